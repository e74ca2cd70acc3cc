"use strict";
(() => {
  const form = document.getElementById("filters");
  const reset = document.getElementById("reset");
  const words = { preset: "presets", tau_z: "τz", study: "studies", variant: "variants" };
  const kinds = Object.keys(words);
  const filtered = [...document.querySelectorAll("[data-about]")].map((element) => [element, JSON.parse(element.dataset.about)]);
  const tables = [...document.querySelectorAll("div[data-about]")];
  const figures = [...document.querySelectorAll("figure")];

  const apply = () => {
    const ticked = Object.fromEntries(
      kinds.map((kind) => [kind, [...form.querySelectorAll(`[name=${kind}]:checked`)].map((box) => box.value)]),
    );
    // Where nothing is ticked, or where an element is about nothing of the kind, there is nothing to choose by.
    const fits = (about) => (kind) => !ticked[kind].length || !about[kind] || about[kind].some((value) => ticked[kind].includes(value));
    for (const [element, about] of filtered) {
      element.hidden = !kinds.every(fits(about));
    }
    for (const table of tables) {
      table.hidden ||= !table.querySelector("tbody tr:not([hidden])");
    }
    const said = kinds.map((kind) => (ticked[kind].length ? `${words[kind]} ${ticked[kind].join(", ")}` : `all ${words[kind]}`));
    const count = figures.filter((figure) => !figure.hidden).length;
    document.getElementById("state").textContent = `Shown: ${said.join(" · ")}. ${count} of ${figures.length} figures.`;
    reset.disabled = kinds.every((kind) => !ticked[kind].length);
  };

  form.addEventListener("change", apply);
  reset.addEventListener("click", () => {
    form.reset();
    apply();
  });
  apply();
})();
