// SPDX-License-Identifier: BSD-3-Clause
// The page: its sections, the choice of a run, and light or dark.
const main = document.getElementById('content');
const nameOf = run => run.study ? run.study : `${run.trail}${run.trail.endsWith(`/${run.run}`) ? '' : `/${run.run}`}`;

function render(focus) {
  charts.forEach(chart => chart.destroy());
  charts = [];
  if (hasCharts()) setDefaults();
  const run = entries[state.run];
  if (!run) {
    main.replaceChildren(el('p', {}, 'There are no runs in this trail.'));
    return;
  }
  if (run.study) showStudy(run);
  else showRun(run);
  const parts = [...main.querySelectorAll('section > h2')];
  main.querySelector('.cards').after(el('nav', {'aria-label': 'On this page'},
    ...parts.map(h => el('a', {href: `#${h.parentElement.id}`}, h.textContent))));
  if (focus) document.getElementById(focus)?.focus();
}

function showStudy(study) {
  main.replaceChildren(el('p', {className: 'what'}, el('b', {}, study.study), ' · a study of an ensemble'),
    studySummary(study), ...studySections.filter(s => s.when({study})).map(s => s.make({study})));
}

function showRun(run) {
  const marks = shown(run), few = marks.slice(-MAX_MARKS), view = {run, marks, few};
  main.replaceChildren(...[
    el('p', {className: 'what'}, el('b', {}, nameOf(run)), ` · ${run.id}` +
      (run.rebuilt ? ' · its manifest was lost, and rebuilt from the part files' : '')),
    summary(run),
    choiceNote(run),
    ...(run.marks.length ? [filters(run)] : []),
    ...sections.filter(s => s.when(view)).map(s => s.make(view))].filter(Boolean));
}

const themes = ['system', 'light', 'dark'];
const dark = matchMedia('(prefers-color-scheme: dark)');
let theme = 'system';
try { theme = localStorage.getItem('cairn-theme') || theme; } catch { /* a file may have no storage */ }

function applyTheme() {
  const now = theme === 'system' ? (dark.matches ? 'dark' : 'light') : theme;
  document.documentElement.dataset.theme = now;
  document.getElementById('theme').textContent = {system: '◐ auto', light: '☀ light', dark: '☾ dark'}[theme];
}

function start() {
  const pick = document.getElementById('run');
  pick.append(...entries.map((run, i) =>
    el('option', {value: i, selected: i === state.run}, nameOf(run))));
  pick.parentElement.hidden = entries.length < 2;
  pick.addEventListener('change', () => {
    Object.assign(state, {run: Number(pick.value), leg: 0});
    render();
  });
  document.getElementById('theme').addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem('cairn-theme', theme); } catch { /* likewise */ }
    applyTheme();
    render();
  });
  dark.addEventListener('change', () => { applyTheme(); render(); });
  document.getElementById('foot').textContent =
    `Cairn ${data.version}, written ${date(data.time)} UTC. This page is whole: it needs no network.`;
  applyTheme();
  render();
}

start();
