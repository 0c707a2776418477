"""The frame of the error report: one HTML page that needs nothing else."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --paper: #fff;
  --card: #f6f8fa; --line: #d1d9e0; --wrong: 207 34 46; --missed: 154 103 0;
  --good: 26 127 55; --accent: #0969da; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1;
  --paper: #0d1117; --card: #161b22; --line: #3d444d; --wrong: 248 81 73;
  --missed: 210 153 34; --good: 63 185 80; --accent: #58a6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 1rem; color: var(--ink);
  background: var(--paper); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .2rem 0; }
h2 { font-size: 1.1rem; margin: 1.4rem 0 .5rem; }
p { margin: .3rem 0; max-width: 75ch; } .soft { color: var(--soft); }
.tables { display: flex; flex-wrap: wrap; gap: 0 1.5rem; align-items: start; }
section { max-width: 100%; } section p { max-width: 50ch; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .45rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; } th:first-child, td:first-child { text-align: left; }
td.cell { background: rgb(var(--wrong) / calc(.75 * var(--p))); }
.bar { display: inline-block; width: 5rem; height: .6rem; background: var(--line);
  border-radius: 2px; overflow: hidden; vertical-align: baseline; }
.bar i { display: block; height: 100%; width: calc(100% * var(--p));
  background: rgb(var(--good)); }
nav { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap;
  gap: .4rem 1rem; align-items: center; padding: .5rem 0; background: var(--paper);
  border-bottom: 1px solid var(--line); }
select, input { font: inherit; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 4px; padding: .15rem .3rem; }
article { margin: .8rem 0; padding: .6rem .8rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; content-visibility: auto;
  contain-intrinsic-size: auto 300px; }
article[hidden] { display: none; }
article header { display: flex; flex-wrap: wrap; gap: 0 1rem; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem; }
@media (max-width: 800px) { .sides { grid-template-columns: 1fr; } }
.sides h3 { margin: .3rem 0; font-size: .8rem; font-weight: 600; color: var(--soft); }
.side { min-width: 0; overflow-wrap: anywhere; line-height: 1.3; }
.b { display: inline-block; max-width: 100%; margin: 2px; padding: 1px 4px;
  border: 1px solid var(--line); border-radius: 4px; vertical-align: top;
  background: var(--card); }
.b > b { margin-right: .25rem; font-size: .72rem; color: var(--soft); }
.w { display: inline-block; margin: 0 2px; }
.w i { display: block; font-size: .62rem; font-style: normal; color: var(--soft); }
.wrong { --tint: var(--wrong); } .missed { --tint: var(--missed); }
.wrong, .missed { --tone: rgb(var(--tint) / calc(.04 + .36 * var(--p)));
  border: 1.5px solid rgb(var(--tint));
  background: linear-gradient(var(--tone), var(--tone)), var(--card); }
.wrong > b, .missed > b { color: var(--ink); }
.key .b { padding: 0 .4rem; }
"""

SCRIPT = """
const list = document.getElementById("sentences");
const items = [...list.children];
const by = id => document.getElementById(id);
function show() {
  const [key, sign] = by("order").value.split(" ");
  const label = by("label").value, words = by("words").value.toLowerCase();
  items.sort((a, b) => sign * (a.dataset[key] - b.dataset[key]) ||
    a.dataset.row - b.dataset.row);
  let shown = 0;
  for (const item of items) {
    const labels = item.dataset.labels.split(" ");
    item.hidden = (label && !labels.includes(label)) ||
      (words && !item.dataset.words.toLowerCase().includes(words));
    shown += !item.hidden;
  }
  list.append(...items);
  by("shown").textContent = `${shown} of ${items.length} sentences`;
}
for (const id of ["order", "label", "words"]) by(id).addEventListener("input", show);
show();
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p class="soft">{about}</p>
<div class="tables">
<section><h2>Scores</h2>{scores}</section>
<section><h2>By length</h2>{lengths}</section>
<section><h2>By label</h2>{labels}</section>
<section><h2>Confused labels</h2>
<p class="soft">Rows are gold labels, columns the predicted label of the same span;
– where the other side has no bracket there.</p>{confusion}</section>
</div>
<h2>Sentences</h2>
<p class="soft key">
<span class="b missed" style="--p:.5">missed</span> gold brackets that were not
predicted, <span class="b wrong" style="--p:.5">wrong</span> predicted brackets that are
not in the gold tree; the deeper the colour, the higher the bracket's posterior.</p>
<nav>
<label>Order <select id="order">
<option value="f1 1">worst F1 first</option><option value="f1 -1">best F1 first</option>
<option value="row 1">as in the treebank</option>
<option value="length 1">shortest first</option>
<option value="length -1">longest first</option>
</select></label>
<label>Errors in <select id="label">
<option value="">any label</option>{options}</select></label>
<label>Words <input id="words" type="search" size="14"></label>
<output id="shown" class="soft"></output>
</nav>
<main id="sentences">
{sentences}
</main>
<script>{script}</script>
</body>
</html>
"""
