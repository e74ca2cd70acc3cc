"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const form = document.getElementById("filters");
  const kinds = ["preset", "tau_z", "study", "variant"];
  const words = { preset: "presets", tau_z: "τz", study: "studies", variant: "variants" };
  const plots = [...document.querySelectorAll(".plot")];
  const printWidth = 680;
  const drawn = new Set();

  const panelOf = (plot) => charts[plot.dataset.chart].panels[plot.dataset.panel];

  // What is chosen of each kind; nothing chosen lets everything through.
  const chosen = () =>
    Object.fromEntries(kinds.map((kind) => [kind, new Set([...form.querySelectorAll(`[name=${kind}]:checked`)].map((box) => box.value))]));
  const lets = (set, value) => !set.size || value === null || value === "" || set.has(String(value));

  const colours = () => {
    const style = getComputedStyle(root);
    const value = (name) => style.getPropertyValue(name).trim();
    return { ink: value("--ink"), muted: value("--muted"), line: value("--line"), paper: value("--paper"), plain: value("--plain") };
  };

  // Names of places on an axis lean where they would not fit beside each other.
  const lean = (own, width) => {
    const letters = (own.ticktext || []).join("   ").replace(/<[^>]*>|&\w+;/g, "").length;
    return letters * 6.5 > width - 70 ? { tickangle: -35 } : {};
  };

  const layoutOf = (panel, width) => {
    const { ink, muted, line, paper, plain } = colours();
    const axis = (own) => ({
      gridcolor: line, linecolor: muted, zerolinecolor: line, tickcolor: muted, ticks: "outside", ticklen: 4,
      showline: true, automargin: true, ...own, title: { ...own.title, standoff: 8, font: { size: 12 } },
    });
    return {
      ...panel.layout, xaxis: axis({ zeroline: false, ...lean(panel.layout.xaxis, width), ...panel.layout.xaxis }), yaxis: axis(panel.layout.yaxis),
      margin: { l: 52, r: 10, t: 10, b: 40 }, hovermode: "closest",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: plain, size: 12, color: ink },
      hoverlabel: { font: { family: plain, size: 12 }, bgcolor: paper, bordercolor: muted },
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    };
  };

  const visibility = (panel) => {
    const set = chosen();
    return panel.about.map((about) => lets(set.tau_z, about.tau_z) && lets(set.variant, about.variant));
  };

  // The error bars of bars have no colour of their own: they stand on the bar and on the paper.
  const tracesOf = (panel) => {
    const shown = visibility(panel);
    const { ink } = colours();
    return panel.data.map((trace, index) => ({
      ...trace, visible: shown[index], ...(trace.error_y && { error_y: { color: ink, ...trace.error_y } }),
    }));
  };

  // On paper a figure has the size of the paper, whatever the window has.
  const sizeOf = (plot) => {
    if (!root.classList.contains("printing")) {
      return { width: plot.clientWidth, height: plot.clientHeight };
    }
    const columns = Number(getComputedStyle(plot).getPropertyValue("--columns"));
    return { width: Math.floor(printWidth / columns) - 16, height: columns > 1 ? 230 : 300 };
  };

  const draw = (plot) => {
    drawn.add(plot);
    const panel = panelOf(plot);
    const size = sizeOf(plot);
    const layout = { ...layoutOf(panel, size.width), ...size };
    return Plotly.react(plot, tracesOf(panel), layout, { displayModeBar: false });
  };

  const nearby = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) {
        nearby.unobserve(target);
        draw(target);
      }
    }
  }, { rootMargin: "600px" });

  const redraw = () => Promise.all([...drawn].filter((plot) => plot.offsetParent).map(draw));
  const drawAll = () => Promise.all(plots.filter((plot) => plot.offsetParent).map(draw));

  const showFigures = (set) => {
    const figures = [...document.querySelectorAll("figure[data-chart]")];
    for (const figure of figures) {
      const chart = charts[figure.dataset.chart];
      const about = chart.panels.flatMap((panel) => panel.about.filter((each) => lets(set.tau_z, each.tau_z)));
      const named = about.some((each) => each.variant);
      const fits = !named || about.some((each) => each.variant && lets(set.variant, each.variant));
      figure.hidden = !(lets(set.preset, chart.preset) && chart.studies.some((study) => lets(set.study, study)) && about.length && fits);
      for (const panel of figure.querySelectorAll(".panel")) {
        panel.hidden = !lets(set.tau_z, panelOf(panel.querySelector(".plot")).tau_z);
      }
      for (const entry of figure.querySelectorAll(".legend li")) {
        entry.hidden = !lets(set.variant, entry.dataset.variant);
      }
    }
    return `${figures.filter((figure) => !figure.hidden).length} of ${figures.length} figures`;
  };

  const showTables = (set) => {
    for (const table of document.querySelectorAll("[data-studies]")) {
      const fits = JSON.parse(table.dataset.studies);
      let rows = 0;
      for (const row of table.querySelectorAll("tbody tr")) {
        row.hidden = !kinds.every((kind) => lets(set[kind], row.dataset[kind === "tau_z" ? "tauZ" : kind] || ""));
        rows += !row.hidden;
      }
      table.hidden = !(rows && (!fits.length || fits.some((study) => lets(set.study, study))));
    }
  };

  const apply = () => {
    const set = chosen();
    const count = showFigures(set);
    showTables(set);
    for (const part of document.querySelectorAll("section[data-preset]")) {
      part.hidden = !lets(set.preset, part.dataset.preset);
    }
    const said = kinds.map((kind) => (set[kind].size ? `${words[kind]} ${[...set[kind]].join(", ")}` : `all ${words[kind]}`));
    document.getElementById("state").textContent = `Shown: ${said.join(" · ")}. ${count}.`;
    document.getElementById("reset").disabled = kinds.every((kind) => !set[kind].size);
    return redraw();
  };

  const fillNumbers = (details) => {
    const figure = details.closest("figure");
    const notes = new Set(charts[figure.dataset.chart].panels.flatMap((panel) => panel.data.flatMap((trace) => trace.text || [])));
    const body = details.querySelector("tbody");
    const plain = document.createElement("textarea");
    for (const note of notes) {
      plain.innerHTML = note.replace(/<\/?sub>/g, "");
      const cut = plain.value.lastIndexOf(": ");
      const row = body.insertRow();
      const name = document.createElement("th");
      name.scope = "row";
      name.textContent = plain.value.slice(0, cut);
      row.append(name);
      row.insertCell().textContent = plain.value.slice(cut + 2);
    }
  };

  form.addEventListener("change", apply);
  document.getElementById("reset").addEventListener("click", () => {
    form.reset();
    apply();
  });
  for (const details of document.querySelectorAll(".numbers")) {
    details.addEventListener("toggle", () => fillNumbers(details), { once: true });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  });
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    drawAll();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    redraw();
  });
  window.incrt = { drawAll };
  apply();
  plots.forEach((plot) => nearby.observe(plot));
})();
