"""The report: from the runs of studies to verdicts, tables, figures and one page.

| module | what it does |
|---|---|
| ``schema`` | the row model: columns of runs, controllers and commands; CSV |
| ``data`` | a dataset: these rows, the studies as they were asked for, histories and episodes |
| ``reading``, ``archive``, ``merging`` | a dataset from a folder of studies, from a report's own folder, from several |
| ``drawn`` | what of it the figures need, which is all that an archive keeps |
| ``selection`` | the runs of one preset by study, variant, regime and condition |
| ``statistics``, ``curves``, ``wording`` | numbers of samples, means over steps, numbers as people read them |
| ``paper``, ``claims`` | the paper's numbers, and what the runs say to its claims |
| ``tables``, ``figures``, ``page`` | what is shown |
| ``build`` | all of it as files |
"""
