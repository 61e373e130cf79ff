// SPDX-License-Identifier: BSD-3-Clause
// The page's program: pictures and tables of the data that stand in the page. Everything that is
// shown is text, never markup, and nothing is fetched.
'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const LEVELS = ['local', 'partner', 'encoded', 'global'];
const TONES = ['accent', 'global', 'partner', 'encoded', 'lost', 'good'];
const MAX_MARKS = 400; // in a picture; the newest ones; tables have all
const main = document.getElementById('content');
const state = {run: Math.max(data.runs.length - 1, 0), leg: 0, levels: new Set(LEVELS)};
let charts = [];

// --- words -------------------------------------------------------------------------------------

const round = (x, digits = 3) => Number(x.toPrecision(digits)).toString();

function bytes(n) {
  if (n == null) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${round(n)} ${units[i]}`;
}

function seconds(s) {
  if (s == null) return '–';
  if (s === 0) return '0 s';
  const [factor, unit] = s < 1e-3 ? [1e6, 'µs'] : s < 1 ? [1e3, 'ms'] : s < 120 ? [1, 's']
    : s < 7200 ? [1 / 60, 'min'] : s < 172800 ? [1 / 3600, 'h'] : [1 / 86400, 'd'];
  return `${round(s * factor)} ${unit}`;
}

const percent = x => x == null ? '–' : `${(100 * x).toFixed(1)} %`;
const count = n => n == null ? '–' : String(n);
const date = t => t == null ? '–' : new Date(t * 1000).toISOString().slice(0, 19).replace('T', ' ');
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const sum = (list, f) => list.reduce((total, item) => total + (f(item) || 0), 0);
const share = m => m.blocks ? m.changed / m.blocks : 0;

// --- elements ----------------------------------------------------------------------------------

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === 'style') for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
    else if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child != null));
  return node;
}

const tone = name => ({'--tone': `var(--${name})`});

function legend(items) {
  return el('ul', {className: 'legend'}, ...items.map(([name, text, shape = '']) =>
    el('li', {}, el('i', {className: shape, style: tone(name)}), text)));
}

// A table whose columns sort: {head, text(row), key(row), left, wide}; open: shown from the start.
function table(caption, columns, rows, {open = false, dim = () => false} = {}) {
  const body = el('tbody');
  const sorted = {column: -1, up: true};
  const fill = () => {
    const list = [...rows];
    const column = columns[sorted.column];
    if (column) {
      const key = column.key || column.text;
      list.sort((a, b) => {
        const x = key(a), y = key(b);
        return (x < y ? -1 : x > y ? 1 : 0) * (sorted.up ? 1 : -1);
      });
    }
    body.replaceChildren(...list.map(row => el('tr', {className: dim(row) ? 'gone' : ''},
      ...columns.map(c => {
        const value = c.text(row);
        return el('td', {className: (c.left ? 'l' : '') + (c.wide ? ' wide' : '')},
          value == null ? '–' : value);
      }))));
  };
  const heads = columns.map((c, i) => {
    const button = el('button', {type: 'button'}, c.head);
    const th = el('th', {scope: 'col', className: c.left ? 'l' : ''}, button);
    button.addEventListener('click', () => {
      sorted.up = sorted.column === i ? !sorted.up : true;
      sorted.column = i;
      heads.forEach(h => h.removeAttribute('aria-sort'));
      th.setAttribute('aria-sort', sorted.up ? 'ascending' : 'descending');
      fill();
    });
    return th;
  });
  fill();
  return el('details', {open}, el('summary', {}, `${caption} (${rows.length})`),
    el('div', {className: 'table', tabIndex: 0, role: 'region', 'aria-label': caption},
      el('table', {}, el('thead', {}, el('tr', {}, ...heads)), body)));
}

// --- pictures ----------------------------------------------------------------------------------

const css = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
const mix = (a, b, t) => `rgb(${rgb(a).map((x, i) => Math.round(x + (rgb(b)[i] - x) * t))})`;
const hasCharts = () => typeof Chart !== 'undefined';

function setDefaults() {
  Object.assign(Chart.defaults, {animation: false, maintainAspectRatio: false, color: css('soft'),
    borderColor: css('grid')});
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  Chart.defaults.plugins.legend.display = false;
  Object.assign(Chart.defaults.plugins.tooltip, {backgroundColor: css('ink'), titleColor: css('card'),
    bodyColor: css('card'), padding: 9, cornerRadius: 6, boxPadding: 4});
}

// Arrow keys go from point to point of the first dataset that has any; Escape leaves.
function addKeys(canvas, chart) {
  let at = -1;
  canvas.addEventListener('keydown', event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    const which = chart.data.datasets.findIndex(d => d.keys && d.data.length);
    const set = which < 0 ? 0 : which;
    const points = chart.getDatasetMeta(set).data;
    if (event.key === 'Escape') at = -1;
    else if (step && points.length) at = (at + step + points.length) % points.length;
    else return;
    event.preventDefault();
    const active = at < 0 ? [] : [{datasetIndex: set, index: at}];
    chart.setActiveElements(active);
    chart.tooltip.setActiveElements(active, at < 0 ? {x: 0, y: 0} : points[at].getCenterPoint());
    chart.update();
  });
}

function picture(id, caption, config, {height, legend: items} = {}) {
  if (!hasCharts()) return el('figure', {}, el('figcaption', {}, caption),
    el('p', {}, 'Cairn was built without a charting library: see the table.'));
  const canvas = el('canvas', {id, tabIndex: 0, role: 'img',
    'aria-label': `${caption}. Arrow keys tell one point after the other.`});
  const box = el('div', {className: height ? 'canvas tall' : 'canvas'}, canvas);
  if (height) box.style.setProperty('--tall', height);
  const figure = el('figure', {}, el('figcaption', {}, caption), box, items || null);
  queueMicrotask(() => {
    const chart = new Chart(canvas, config);
    addKeys(canvas, chart);
    charts.push(chart);
  });
  return figure;
}

const axis = (text, format, more = {}) => ({
  title: {display: Boolean(text), text}, grid: {color: css('grid')}, ...more,
  ticks: {maxRotation: 0, autoSkipPadding: 12, ...(format ? {callback: v => format(v)} : {}),
    ...more.ticks}});

// Ticks of a logarithmic axis, without the crowd between 1, 2 and 5.
const logAxis = format => ({type: 'logarithmic', beginAtZero: false, ticks: {
  callback: v => /^[125]e/.test(Number(v).toExponential(0)) &&
    Math.abs(Number(Number(v).toExponential(0)) / v - 1) < 1e-6 ? format(v) : null}});

const markAxis = more => axis('mark', null, {grid: {display: false}, ...more});

// Bars or lines over marks: sets of {label, tone, value(mark), ...}.
function overMarks(marks, sets, format, more = {}) {
  return {
    type: more.type || 'bar',
    data: {labels: marks.map(m => m.version), datasets: sets.map(s => ({
      label: s.label, data: marks.map(s.value), backgroundColor: css(s.tone),
      borderColor: css(s.tone), borderWidth: s.type === 'line' ? 2 : 0, pointRadius: 2.5,
      categoryPercentage: 0.9, barPercentage: 0.95, keys: true, ...s.more}))},
    options: {
      interaction: {mode: 'index', intersect: false},
      scales: {x: markAxis({stacked: more.stacked}),
        y: axis(more.title, format, {beginAtZero: true, stacked: more.stacked, ...more.y})},
      plugins: {tooltip: {callbacks: {
        title: items => `mark ${items[0].label}`,
        label: item => ` ${item.dataset.label}: ${format(item.parsed.y)}`}}}}};
}

// --- which marks -------------------------------------------------------------------------------

const levelOf = mark => [...LEVELS].reverse().find(l => l in mark.levels) || 'local';
const levelsOf = mark => LEVELS.filter(l => l === 'local' || l in mark.levels);

const shown = run => run.marks.filter(m =>
  (state.leg === 0 || m.leg === state.leg) && state.levels.has(levelOf(m)));

function filters(run) {
  const legs = el('select', {id: 'leg', 'aria-label': 'Legs'},
    el('option', {value: 0}, 'all legs'),
    ...run.legs.map(l => el('option', {value: l.leg, selected: l.leg === state.leg}, `leg ${l.leg}`)));
  legs.addEventListener('change', () => { state.leg = Number(legs.value); render('leg'); });
  const chips = LEVELS.map(level => {
    const on = state.levels.has(level);
    const chip = el('button', {type: 'button', className: 'chip', id: `level-${level}`,
      'aria-pressed': String(on), style: tone(level)}, level);
    chip.addEventListener('click', () => {
      if (on) state.levels.delete(level); else state.levels.add(level);
      render(chip.id);
    });
    return chip;
  });
  return el('div', {className: 'filters'}, 'Marks of ', legs, ' whose safest level is ', ...chips);
}

// --- sections ----------------------------------------------------------------------------------

const section = (id, title, text, ...children) =>
  el('section', {id}, el('h2', {}, title), text ? el('p', {}, text) : null, ...children);

function card(name, value, note, look = '') {
  return el('div', {className: `card ${look}`}, el('dt', {}, name),
    el('dd', {}, value, note ? el('small', {}, note) : null));
}

function summary(run) {
  const legs = run.legs;
  const first = legs.length ? legs[0].began : run.created;
  const last = legs.length ? legs[legs.length - 1] : null;
  const end = last && last.ended ? last.ended : null;
  const lost = sum(legs, l => l.lost_seconds);
  const restart = sum(legs, l => l.restart_seconds);
  const held = sum(run.marks, m => m.held);
  const whole = end ? end - first : null;
  return el('dl', {className: 'cards'},
    card('State', run.finished ? 'finished' : 'unfinished',
      last ? `last leg: ${last.end}, ${plural(last.ranks, 'rank')}` : '', run.finished ? 'good' : ''),
    card('Took', seconds(whole), `began ${date(first)}`),
    card('Legs', count(legs.length), `${plural(Math.max(legs.length - 1, 0), 'restart')}`),
    card('Marks', count(run.marks.length), `${run.kept.length} kept now`),
    card('Work lost', seconds(lost), whole ? `${percent(lost / whole)} of the time` : '',
      lost > 0 ? 'bad' : ''),
    card('Coming back', seconds(restart), whole ? `${percent(restart / whole)} of the time` : ''),
    card('Held by marks', seconds(held), whole ? `${percent(held / whole)} of the time` : ''),
    card('Written', bytes(sum(run.marks, m => m.written)),
      `for ${bytes(sum(run.marks, m => m.nbytes))} of state`));
}

const pointStyles = {local: 'circle', partner: 'triangle', encoded: 'rect', global: 'rectRot'};

function legSpans(run) {
  const start = run.legs[0].began;
  const spans = {starting: [], working: [], lost: []};
  for (const l of run.legs) {
    const y = `leg ${l.leg}`;
    const marks = run.marks.filter(m => m.leg === l.leg);
    const end = l.ended ?? (marks.length ? marks[marks.length - 1].time : l.opened ?? l.began);
    const opened = l.opened === null ? end : l.opened + (l.resume_seconds || 0);
    const kept = Math.max(end - (l.lost_seconds || 0), Math.min(opened, end));
    if (opened > l.began) spans.starting.push({x: [l.began - start, opened - start], y, leg: l});
    if (kept > opened) spans.working.push({x: [opened - start, kept - start], y, leg: l});
    if (end > kept) spans.lost.push({x: [kept - start, end - start], y, leg: l});
  }
  return spans;
}

const span = run => Math.max(...run.legs.map(l => l.ended ?? l.began),
  ...run.marks.map(m => m.time)) - run.legs[0].began;

function timelineConfig(run, marks) {
  const start = run.legs[0].began;
  const spans = legSpans(run);
  const bar = (label, name) => ({type: 'bar', label, data: spans[name], grouped: false, order: 3,
    backgroundColor: css({starting: 'start', working: 'work', lost: 'lost'}[name]),
    barPercentage: 0.62, borderRadius: 3, borderSkipped: false});
  const points = {type: 'scatter', label: 'marks', order: 1, keys: true, hoverRadius: 8,
    radius: marks.map(m => levelOf(m) === 'local' ? 4.5 : 6.5),
    data: marks.map(m => ({x: m.time - start, y: `leg ${m.leg}`, mark: m})),
    pointStyle: marks.map(m => pointStyles[levelOf(m)]),
    backgroundColor: marks.map(m => m.abandoned ? css('card') : css(levelOf(m))),
    borderColor: marks.map(m => m.abandoned ? css(levelOf(m)) : css('card')), borderWidth: 1};
  const failed = run.legs.filter(l => l.ended && !['finished', 'stopped'].includes(l.end));
  const ends = {type: 'scatter', label: 'failures', order: 0, radius: 7, hoverRadius: 9,
    pointStyle: 'crossRot', borderColor: css('lost'), borderWidth: 3,
    data: failed.map(l => ({x: l.ended - start, y: `leg ${l.leg}`, leg: l}))};
  return {
    data: {labels: run.legs.map(l => `leg ${l.leg}`),
      datasets: [ends, points, bar('starting', 'starting'), bar('working', 'working'),
        bar('lost again', 'lost')]},
    options: {indexAxis: 'y',
      scales: {x: axis('since the run began', seconds, {type: 'linear', min: 0, max: span(run) * 1.01,
        ticks: {includeBounds: false}}),
        y: axis('', null, {type: 'category', labels: run.legs.map(l => `leg ${l.leg}`),
          offset: true, grid: {display: false}})},
      plugins: {tooltip: {callbacks: {title: timelineTitle, label: timelineLines}}}}};
}

const timelineTitle = items => {
  const raw = items[0].raw;
  return raw.mark ? `mark ${raw.mark.version}` : `leg ${raw.leg.leg} on ${plural(raw.leg.ranks, 'rank')}`;
};

function timelineLines(item) {
  const {mark, leg, x} = item.raw;
  if (mark) return [`${levelsOf(mark).join(', ')}${mark.abandoned ? '; gone: the run went on from an earlier one' : ''}`,
    `${percent(share(mark))} of the blocks changed, ${bytes(mark.written)} written`,
    `held the program for ${seconds(mark.held)}`];
  if (!Array.isArray(x)) return leg.end;
  const text = {starting: 'starting and resuming', working: 'working', 'lost again': 'work that was lost'};
  return `${text[item.dataset.label]}: ${seconds(x[1] - x[0])}`;
}

function legTable(run) {
  return table('The legs', [
    {head: 'leg', text: l => count(l.leg), key: l => l.leg},
    {head: 'began (UTC)', left: true, text: l => date(l.began)},
    {head: 'ranks', text: l => count(l.ranks), key: l => l.ranks},
    {head: 'nodes', text: l => count(l.nodes), key: l => l.nodes ?? 0},
    {head: 'resumed mark', text: l => count(l.resumed), key: l => l.resumed ?? -1},
    {head: 'from', left: true, text: l => l.from ? Object.entries(l.from)
      .map(([level, f]) => `${level} ${f.blocks}`).join(', ') : '–'},
    {head: 'back after', text: l => seconds(l.restart_seconds), key: l => l.restart_seconds ?? -1},
    {head: 'marks', text: l => count(l.marks), key: l => l.marks},
    {head: 'lost', text: l => seconds(l.lost_seconds), key: l => l.lost_seconds ?? -1},
    {head: 'end', left: true, text: l => l.end},
    {head: 'last lines', left: true, wide: true, key: l => l.output || '', text: l => l.output
      ? el('details', {}, el('summary', {}, 'show'), el('pre', {}, l.output)) : '–'},
  ], run.legs, {open: true});
}

function timeline(run, marks) {
  return section('timeline', 'What happened',
    'Each leg from its start to its end, with its marks. What lies between the last mark that the run ' +
    'went on with and the end of a leg was computed in vain.',
    picture('chart-timeline', 'Legs, marks and failures', timelineConfig(run, marks.slice(-MAX_MARKS)), {
      height: `${Math.max(run.legs.length * 2.3 + 4, 8)}rem`,
      legend: legend([['start', 'starting and resuming'], ['work', 'working'], ['lost', 'lost'],
        ...LEVELS.filter(l => marks.some(m => levelOf(m) === l)).map(l => [l, `mark, ${l}`, pointStyles[l]])])}),
    legTable(run));
}

// One row for each rank, or for groups of neighbours, as the log has it; else one for all.
const rankShares = m => m.ranks.length ? m.ranks : [share(m)];

function heatConfig(marks) {
  const rows = Math.max(...marks.map(m => rankShares(m).length));
  const tones = [css('grid'), css('accent')];
  const color = x => x == null ? 'transparent' : mix(tones[0], tones[1], Math.sqrt(x));
  const name = (r, n) => n === 1 ? 'all ranks' : `rank ${r}`;
  const shares = marks.map(rankShares);
  return {
    type: 'bar',
    data: {labels: marks.map(m => m.version), datasets: Array.from({length: rows}, (_, r) => ({
      label: name(r, rows), keys: r === 0, data: marks.map(() => 1),
      shares: shares.map(s => s[r]), backgroundColor: shares.map(s => color(s[r])), categoryPercentage: 1,
      barPercentage: 1, borderColor: css('card'), borderWidth: marks.length * rows > 2000 ? 0 : 1}))},
    options: {
      scales: {x: markAxis({stacked: true}),
        y: {stacked: true, reverse: true, max: rows, grid: {display: false},
          title: {display: rows > 1, text: 'rank'},
          afterBuildTicks: scale => { // in the middle of each row, not at its edge
            scale.ticks = Array.from({length: rows}, (_, r) => ({value: r + 0.5}));
          },
          ticks: {display: rows > 1, callback: v => String(Math.floor(v))}}},
      plugins: {tooltip: {callbacks: {
        title: items => `mark ${items[0].label}, ${items[0].dataset.label}`,
        label: item => `${percent(item.dataset.shares[item.dataIndex])} of the state changed`}}}}};
}

// What changed in each variable, where the log tells it.
function variableParts(marks) {
  const named = [...new Set(marks.flatMap(m => m.variables.map(v => v.name)))];
  if (!named.length) return [];
  const changed = name => m => m.variables.find(v => v.name === name)?.changed ?? null;
  const rows = marks.flatMap(m => m.variables.map(v => ({...v, version: m.version})));
  const ratio = x => x == null ? '–' : percent(1 + x);
  return [
    picture('chart-variables', 'Changed, by variable', overMarks(marks, named.map((name, i) => (
      {label: name, tone: TONES[i % TONES.length], value: changed(name)})), bytes,
    {stacked: true, y: {ticks: {stepSize: byteStep(marks)}}}),
    {legend: legend(named.map((name, i) => [TONES[i % TONES.length], name]))}),
    table('Variables', [
      {head: 'mark', text: v => count(v.version), key: v => v.version},
      {head: 'variable', left: true, text: v => v.name},
      {head: 'size', text: v => bytes(v.nbytes), key: v => v.nbytes},
      {head: 'pages written', text: v => v.tracked ? bytes(v.written) : '–', key: v => v.written},
      {head: 'digested', text: v => bytes(v.hashed), key: v => v.hashed},
      {head: 'changed', text: v => bytes(v.changed), key: v => v.changed},
      {head: 'stored', text: v => bytes(v.stored), key: v => v.stored},
      {head: 'way', left: true, text: v => v.way},
      {head: 'of a full one: predicted', text: v => ratio(v.predicted), key: v => v.predicted ?? -9},
      {head: 'measured', text: v => ratio(v.measured), key: v => v.measured ?? -9},
    ], rows)];
}

function changes(marks) {
  const rows = Math.max(...marks.map(m => rankShares(m).length));
  const bar = el('span', {className: 'scale', style: {background:
    `linear-gradient(90deg, ${[0, .1, .25, .5, 1].map(x => `${mix(css('grid'), css('accent'), Math.sqrt(x))} ${100 * x}%`)})`}});
  return section('changes', 'What changed',
    'The share of the state that differs from the mark before: only that is written.',
    picture('chart-changes', 'Changed share by rank and mark', heatConfig(marks), {
      height: `${Math.min(Math.max(rows * 1.5 + 5, 9), 32)}rem`,
      legend: el('ul', {className: 'legend'}, el('li', {}, '0 %', bar, '100 %'))}),
    table('Changed share', [
      {head: 'mark', text: m => count(m.version), key: m => m.version},
      {head: 'all ranks', text: m => percent(share(m)), key: share},
      ...(rows > 1 ? Array.from({length: rows}, (_, r) => ({head: `rank ${r}`,
        text: m => percent(rankShares(m)[r]), key: m => rankShares(m)[r] ?? -1})) : []),
    ], marks), ...variableParts(marks));
}

const byteStep = marks => 2 ** Math.floor(Math.log2(
  Math.max(...marks.map(m => Math.max(m.written, m.nbytes)), 8) / 4));

const levelSeconds = level => m => level in m.levels ? m.levels[level].seconds : null;

function costs(marks) {
  const used = LEVELS.slice(1).filter(l => marks.some(m => l in m.levels));
  return section('costs', 'What marks cost',
    'Only "held" costs the program time; the rest happens behind its back.',
    el('div', {className: 'pictures'},
      picture('chart-sizes', 'Written, against the size of the state', overMarks(marks, [
        {label: 'written', tone: 'accent', value: m => m.written},
        {label: 'state', tone: 'soft', type: 'line', value: m => m.nbytes,
          more: {type: 'line', borderDash: [5, 4], pointRadius: 0}}], bytes,
      {y: {ticks: {stepSize: byteStep(marks)}}})),
      picture('chart-held', 'The program was held for', overMarks(marks, [
        {label: 'held', tone: 'lost', value: m => m.held}], seconds)),
      picture('chart-background', 'In the background', overMarks(marks, [
        {label: 'stored', tone: 'local', value: m => m.stored},
        ...used.map(l => ({label: l, tone: l, value: levelSeconds(l)}))], seconds, {stacked: true}), {
        legend: legend([['local', 'stored locally'], ...used.map(l => [l, `raised to ${l}`])])}),
      intervalPicture(marks)),
    table('The marks', [
      {head: 'mark', text: m => count(m.version), key: m => m.version},
      {head: 'time (UTC)', left: true, text: m => date(m.time)},
      {head: 'leg', text: m => count(m.leg), key: m => m.leg},
      {head: 'state', text: m => bytes(m.nbytes), key: m => m.nbytes},
      {head: 'blocks', text: m => count(m.blocks), key: m => m.blocks},
      {head: 'changed', text: m => count(m.changed), key: m => m.changed},
      {head: 'share', text: m => percent(share(m)), key: share},
      {head: 'written', text: m => bytes(m.written), key: m => m.written},
      {head: 'held', text: m => seconds(m.held), key: m => m.held},
      {head: 'stored in', text: m => seconds(m.stored), key: m => m.stored},
      ...used.map(l => ({head: `${l} in`, text: m => seconds(levelSeconds(l)(m)),
        key: m => levelSeconds(l)(m) ?? -1})),
      {head: 'planned', text: m => m.interval ? seconds(m.interval) : '–', key: m => m.interval || 0},
      {head: 'since', text: m => seconds(m.since), key: m => m.since},
      {head: 'levels', left: true, key: levelOf, text: m => el('span', {},
        ...levelsOf(m).map(l => el('span', {className: 'badge', style: tone(l)}, l)))},
      {head: 'failed', left: true, wide: true, key: m => m.failed.length,
        text: m => m.failed.map(f => f.text).join('; ') || '–'},
    ], marks, {dim: m => m.abandoned}));
}

function intervalPicture(marks) {
  const planned = m => m.interval || null;
  const top = Math.max(...marks.map(m => m.since), 1e-6);
  const wide = Math.max(...marks.map(m => planned(m) || 0)) > 20 * top;
  return picture('chart-interval', 'From mark to mark: what the planner thought best, and what was done',
    overMarks(marks, [
      {label: 'planned', tone: 'encoded', type: 'line', value: planned,
        more: {stepped: true, pointRadius: 0, spanGaps: true}},
      {label: 'done', tone: 'good', type: 'line', value: m => m.since, more: {}}], seconds,
    {type: 'line', y: wide ? logAxis(seconds) : {}}),
    {legend: legend([['encoded', 'planned'], ['good', 'done']])});
}

// --- two runs ----------------------------------------------------------------------------------

const nameIndex = (row, index) => `${row.variable}[${index.join(', ')}]`;

function partingText(c) {
  const row = c.parts;
  if (c.verdict === 'same') return `No value of ${plural(c.nmarks, 'mark')} differs.`;
  if (!row) return `${c.verdict}: ${(c.rows.find(r => r.text) || {}).text || 'see the table'}`;
  if (!row.where) return row.text;
  const {rank, index, first, second} = row.where;
  return `They part at mark ${row.version}: ${nameIndex(row, index)} on rank ${rank} is ${first} in the ` +
    `first run and ${second} in the second.`;
}

// A line for each variable over the marks that both runs have.
function growthConfig(c, value, format, scale) {
  const versions = [...new Set(c.rows.map(r => r.version))];
  const variables = [...new Set(c.rows.filter(r => r.variable).map(r => r.variable))];
  const at = (name, v) => c.rows.find(r => r.variable === name && r.version === v);
  return {type: 'line',
    data: {labels: versions, datasets: variables.map((name, i) => ({label: name, keys: i === 0,
      data: versions.map(v => { const r = at(name, v); return r ? value(r) : null; }),
      borderColor: css(TONES[i % TONES.length]), backgroundColor: css(TONES[i % TONES.length]),
      borderWidth: 2, pointRadius: 2.5, spanGaps: true}))},
    options: {interaction: {mode: 'index', intersect: false},
      scales: {x: markAxis(), y: axis('', format, scale)},
      plugins: {tooltip: {callbacks: {title: items => `mark ${items[0].label}`,
        label: item => ` ${item.dataset.label}: ${format(item.parsed.y)}`}}}}};
}

const power = v => v == null ? '–' : Number(v).toExponential(1).replace('.0e', 'e');

function comparison(c) {
  const variables = [...new Set(c.rows.filter(r => r.variable).map(r => r.variable))];
  const names = () => legend(variables.map((name, i) => [TONES[i % TONES.length], name]));
  const grown = r => r.max > 0 ? r.max : null;
  return section('comparison', 'Two runs compared', `${c.first} and ${c.second}`,
    el('dl', {className: 'cards'},
      card('Verdict', c.verdict, plural(c.nmarks, 'mark') + ' compared', c.verdict === 'same' ? 'good' : 'bad'),
      card('First difference', c.parts ? `mark ${c.parts.version}` : '–',
        c.parts && c.parts.where ? nameIndex(c.parts, c.parts.where.index) : ''),
      card('Compared', bytes(c.nbytes), 'of state'),
      card('Read', bytes(c.read_bytes), `${percent(c.nbytes ? c.read_bytes / (2 * c.nbytes) : 0)} of both runs`)),
    el('p', {id: 'parting'}, partingText(c)),
    c.verdict === 'different' ? el('div', {className: 'pictures'},
      picture('chart-growth', 'The largest difference of each variable, mark by mark',
        growthConfig(c, grown, power, logAxis(power)), {legend: names()}),
      picture('chart-spread', 'The share of values that differ',
        growthConfig(c, r => r.nvalues ? r.ndiffering / r.nvalues : 0, percent, {beginAtZero: true}),
        {legend: names()})) : null,
    table('Variables and marks', [
      {head: 'mark', text: r => count(r.version), key: r => r.version},
      {head: 'variable', left: true, text: r => r.variable},
      {head: 'verdict', left: true, text: r => r.verdict},
      {head: 'bound', left: true, text: r => r.bound},
      {head: 'values', text: r => count(r.nvalues), key: r => r.nvalues},
      {head: 'differ', text: r => count(r.ndiffering), key: r => r.ndiffering},
      {head: 'largest', text: r => r.max == null ? '–' : round(r.max), key: r => r.max ?? -1},
      {head: 'root mean square', text: r => r.rms == null ? '–' : round(r.rms), key: r => r.rms ?? -1},
      {head: 'rank', text: r => r.where ? count(r.where.rank) : '–', key: r => r.where ? r.where.rank : -1},
      {head: 'first index', left: true, text: r => r.where ? r.where.index.join(', ') : '–'},
      {head: 'first value', text: r => r.where ? r.where.first : '–'},
      {head: 'second value', text: r => r.where ? r.where.second : '–'},
    ], c.rows));
}

// --- the page ----------------------------------------------------------------------------------

const nameOf = run => `${run.trail}${run.trail.endsWith(`/${run.run}`) ? '' : `/${run.run}`}`;

function render(focus) {
  charts.forEach(chart => chart.destroy());
  charts = [];
  if (hasCharts()) setDefaults();
  const run = data.runs[state.run];
  if (!run) {
    main.replaceChildren(el('p', {}, 'There are no runs in this trail.'));
    return;
  }
  const marks = shown(run);
  const few = marks.slice(-MAX_MARKS);
  main.replaceChildren(
    el('p', {className: 'what'}, el('b', {}, nameOf(run)), ` · ${run.id}` +
      (run.rebuilt ? ' · its manifest was lost, and rebuilt from the part files' : '')),
    summary(run),
    ...(run.marks.length ? [filters(run)] : []),
    ...(run.legs.length ? [timeline(run, marks)] : []),
    ...(few.length ? [changes(few), costs(few)] : [section('none', 'Marks', 'None to show.')]),
    ...(data.comparison ? [comparison(data.comparison)] : []));
  const parts = [...main.querySelectorAll('section > h2')];
  main.querySelector('.cards').after(el('nav', {'aria-label': 'On this page'},
    ...parts.map(h => el('a', {href: `#${h.parentElement.id}`}, h.textContent))));
  if (focus) document.getElementById(focus)?.focus();
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
  pick.append(...data.runs.map((run, i) =>
    el('option', {value: i, selected: i === state.run}, nameOf(run))));
  pick.parentElement.hidden = data.runs.length < 2;
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
})();
