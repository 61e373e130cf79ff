// SPDX-License-Identifier: BSD-3-Clause
// What the run did to the network and the storage, as its trace tells: the numbers of 'cairn trace
// stat --json', with ranks joined to groups where there are many.
const MAX_BARS = 12;
const LAYERS = {p2p: ['accent', 'point to point'], wait: ['lost', 'waits, tests, probes'],
  coll: ['global', 'collectives'], rma: ['good', 'one-sided'], mpiio: ['encoded', 'MPI-IO'],
  posix: ['partner', 'files'], comm: ['work', 'communicators'], env: ['soft', 'start and end'],
  note: ['start', 'notes']};

const layersOf = rows => Object.keys(LAYERS).filter(l => rows.some(r => r.layer === l));
const layerLegend = layers => legend(layers.map(l => LAYERS[l]));
const cut = text => text.length > 24 ? `${text.slice(0, 23)}…` : text;
const callName = r => r.within ? `${r.call} < ${r.within}` : r.call;
const each = r => r.events ? r.nbytes / r.events : 0;
const stepOf = top => 2 ** Math.max(Math.floor(Math.log2(Math.max(top, 1) / 4)), 0);
const byteTicks = top => ({ticks: {stepSize: stepOf(top)}});

function patternOf(r) {
  if (!r.steps) return '–';
  if (r.consecutive === r.steps) return 'consecutive';
  if (r.strided === r.steps) return 'strided';
  return `${percent(r.consecutive / r.steps)} consecutive, ${percent(r.strided / r.steps)} strided`;
}

// --- calls ---------------------------------------------------------------------------------------

const callLines = r => [` ${LAYERS[r.layer][1]}`, ` ${plural(r.events, 'call')}, ${bytes(r.nbytes)}`,
  ` ${seconds(r.seconds)} in all, the longest ${seconds(r.seconds_max)}`];

// The calls of which there is most, as bars across.
function callPicture(id, caption, calls, value, format, more = {}) {
  const rows = calls.filter(r => value(r) > 0).sort((a, b) => value(b) - value(a)).slice(0, MAX_BARS);
  if (!rows.length) return null;
  return picture(id, caption, {type: 'bar',
    data: {labels: rows.map(callName), datasets: [{keys: true, data: rows.map(value),
      backgroundColor: rows.map(r => css(LAYERS[r.layer][0])), barPercentage: 0.85, minBarLength: 2,
      borderRadius: 2}]},
    options: {indexAxis: 'y',
      scales: {x: axis('', format, {beginAtZero: true, ...more}),
        y: axis('', null, {grid: {display: false},
          ticks: {autoSkip: false, callback: i => cut(callName(rows[i]))}})},
      plugins: {tooltip: {callbacks: {label: item => callLines(rows[item.dataIndex])}}}}},
  {height: `${rows.length * 1.5 + 3}rem`, legend: layerLegend(layersOf(rows))});
}

const callColumns = [
  words('call', callName),
  words('layer', r => r.layer),
  numbers('calls', count, r => r.events),
  numbers('bytes', bytes, r => r.nbytes),
  numbers('each', bytes, each),
  numbers('time', seconds, r => r.seconds),
  numbers('each', seconds, r => r.seconds / r.events),
];

function sizePicture(t) {
  const sizes = [...new Set(t.sizes.map(r => r.size))].sort((a, b) => a - b);
  const layers = layersOf(t.sizes);
  const at = (layer, size) => t.sizes.find(r => r.layer === layer && r.size === size)?.events ?? null;
  if (!sizes.length) return null;
  return picture('chart-trace-sizes', 'Sizes of requests, from the power of two on', {type: 'bar',
    data: {labels: sizes.map(bytes), datasets: layers.map((l, i) => ({label: LAYERS[l][1], keys: i === 0,
      data: sizes.map(s => at(l, s)), backgroundColor: css(LAYERS[l][0])}))},
    options: {interaction: {mode: 'index', intersect: false},
      scales: {x: axis('', null, {stacked: true, grid: {display: false}}),
        y: axis('calls', count, {stacked: true, beginAtZero: true})}}},
  {legend: layerLegend(layers)});
}

// --- ranks ---------------------------------------------------------------------------------------

function pairPicture(t) {
  const n = t.groups, color = heatColors();
  const cells = Array.from({length: n}, () => Array(n).fill(null));
  t.pairs.filter(p => p.peer >= 0).forEach(p => { cells[p.rank][p.peer] = p; });
  const top = Math.max(...t.pairs.map(p => p.nbytes), 1);
  const name = r => rankName(r, n, t.nranks);
  return picture('chart-pairs', 'Sent from rank to rank', {type: 'bar',
    data: {labels: cells.map((_, r) => firstOf(r, n, t.nranks)), datasets: cells.map((row, r) => ({
      label: name(r), keys: r === 0, data: row.map(() => 1), pairs: row, categoryPercentage: 1,
      barPercentage: 1, borderColor: css('card'), borderWidth: n > 40 ? 0 : 1,
      backgroundColor: row.map(p => color((p?.nbytes ?? 0) / top))}))},
    options: {scales: {x: axis('to rank', null, {stacked: true, grid: {display: false}}),
      y: heatAxis(n, t.nranks, 'from rank')},
    plugins: {tooltip: {callbacks: {
      title: items => `${name(items[0].datasetIndex)} to ${name(items[0].dataIndex)}`,
      label: item => pairText(item.dataset.pairs[item.dataIndex])}}}}},
  {height: `${Math.min(Math.max(n * 1.6 + 5, 12), 30)}rem`, legend: heatScale('0 B', bytes(top))});
}

const pairText = p => p ? `${bytes(p.nbytes)} in ${plural(p.events, 'message')}` : 'nothing';

// Seconds of each rank, by layer; the mean of each group, since these are not all of a size.
function rankPicture(id, caption, t, rows, value) {
  const layers = layersOf(rows.filter(r => value(r) > 0));
  const size = r => firstOf(r + 1, t.groups, t.nranks) - firstOf(r, t.groups, t.nranks);
  const at = new Map(rows.map(r => [`${r.layer} ${r.rank}`, value(r) / size(r.rank)]));
  const names = Array.from({length: t.groups}, (_, r) => rankName(r, t.groups, t.nranks));
  if (!layers.length) return null;
  return picture(id, caption, {type: 'bar',
    data: {labels: names, datasets: layers.map((l, i) => ({label: LAYERS[l][1], keys: i === 0,
      data: names.map((_, r) => at.get(`${l} ${r}`) ?? null), backgroundColor: css(LAYERS[l][0]),
      categoryPercentage: 0.9, barPercentage: 0.95}))},
    options: {interaction: {mode: 'index', intersect: false},
      scales: {x: axis('rank', null, {stacked: true, grid: {display: false},
        ticks: {callback: r => firstOf(r, t.groups, t.nranks)}}),
      y: axis('', seconds, {stacked: true, beginAtZero: true})},
      plugins: {tooltip: {callbacks: {
        label: item => ` ${item.dataset.label}: ${seconds(item.parsed.y)}`}}}}},
  {legend: layerLegend(layers)});
}

const gapName = g => `${g.from ?? 'start'} → ${g.to}`;
const uneven = g => g.seconds ? g.seconds_max / g.seconds : 1;

// Where all wait for the slowest: the list comes with what is lost most by it first.
function gapPicture(t) {
  const gaps = t.gaps.slice(0, MAX_BARS / 2);
  const bars = (label, name, value) => ({label, keys: name === 'work', data: gaps.map(value),
    backgroundColor: css(name), barPercentage: 0.9, minBarLength: 2, borderRadius: 2});
  if (!gaps.length) return null;
  return picture('chart-gaps', 'Computing between two calls, the most uneven first', {type: 'bar',
    data: {labels: gaps.map(gapName), datasets: [bars('mean', 'work', g => g.seconds),
      bars('longest', 'lost', g => g.seconds_max)]},
    options: {indexAxis: 'y', interaction: {mode: 'index', intersect: false, axis: 'y'},
      scales: {x: axis('', seconds, {beginAtZero: true}),
        y: axis('', null, {grid: {display: false},
          ticks: {autoSkip: false, callback: i => [cut(gaps[i].from ?? 'start'), cut(`→ ${gaps[i].to}`)]}})},
      plugins: {tooltip: {callbacks: {label: item => ` ${item.dataset.label}: ${seconds(item.parsed.x)}`,
        afterBody: items => ` longest on rank ${gaps[items[0].dataIndex].longest_rank}`}}}}},
  {height: `${gaps.length * 2.6 + 3}rem`, legend: legend([['work', 'mean'], ['lost', 'longest']])});
}

// --- tables --------------------------------------------------------------------------------------

function traceTables(t) {
  const rank = r => rankName(r, t.groups, t.nranks);
  return [
    table('Calls', [...callColumns,
      numbers('longest', seconds, r => r.seconds_max)], t.calls),
    table('Call sites', [...callColumns, words('site', r => r.site)], t.sites),
    t.pairs.length ? table('Messages', [
      words('from', p => rank(p.rank), p => p.rank),
      words('to', p => p.peer < 0 ? '–' : rank(p.peer), p => p.peer),
      numbers('messages', count, p => p.events),
      numbers('bytes', bytes, p => p.nbytes),
    ], t.pairs) : null,
    t.files.length ? table('Files', [words('file', r => r.file), ...callColumns,
      words('pattern', patternOf)], t.files) : null,
    t.sizes.length ? table('Sizes', [
      words('layer', r => r.layer),
      numbers('size from', bytes, r => r.size),
      numbers('calls', count, r => r.events),
      numbers('bytes', bytes, r => r.nbytes),
    ], t.sizes) : null,
    table('Ranks', [
      words('rank', r => rank(r.rank), r => r.rank),
      words('layer', r => r.layer),
      numbers('calls', count, r => r.events),
      numbers('bytes', bytes, r => r.nbytes),
      numbers('time', seconds, r => r.seconds),
      numbers('waited', seconds, r => r.waited),
    ], t.ranks),
    ...(t.times ? timeTables(t) : [])];
}

const timeTables = t => [
  t.waits.length ? table('Who waits for whom', [
    words('call', callName),
    numbers('waited', seconds, r => r.waited),
    numbers('of', seconds, r => r.seconds),
    numbers('came last: rank', count, r => r.last),
    numbers('waited most: rank', count, r => r.waits),
    words('site', r => r.site),
  ], t.waits) : null,
  t.gaps.length ? table('Computing between calls', [
    words('between', gapName),
    numbers('times', count, g => g.n),
    numbers('mean', seconds, g => g.seconds),
    numbers('longest', seconds, g => g.seconds_max),
    numbers('on rank', count, g => g.longest_rank),
    numbers('longest / mean', round, uneven),
    numbers('in all', seconds, g => g.n * g.seconds),
  ], t.gaps) : null];

// --- the section ---------------------------------------------------------------------------------

// Of what the program itself called: what is called within that would count twice.
function traceCards(t) {
  const own = t.calls.filter(r => !r.within);
  const whole = t.seconds * t.nranks;
  const filed = own.filter(r => r.layer === 'mpiio' || r.layer === 'posix');
  return el('dl', {className: 'cards'},
    card('Recorded', seconds(t.seconds), `${plural(t.nranks, 'rank')}, began ${date(t.began_ns / 1e9)}`),
    card('In calls', t.times && whole ? percent(sum(own, r => r.seconds) / whole) : '–',
      `of the time; ${plural(t.events, 'event')}`),
    card('Sent', bytes(sum(t.pairs, p => p.nbytes)), `in ${plural(sum(t.pairs, p => p.events), 'message')}`),
    card('Files', bytes(sum(filed, r => r.nbytes)), `in ${plural(sum(filed, r => r.events), 'call')}`));
}

const traceText = t => `What ${t.program} did to network and storage. Times are known by call site, over ` +
  'all ranks together: those of single ranks are shared out by calls. Waiting is what a call took above ' +
  'the shortest one of its site.' +
  (t.groups < t.nranks ? ` Ranks are shown as ${t.groups} groups of neighbours, by their means in bars.` : '') +
  (t.precision < 100 ? ` Recorded with a precision of ${t.precision} %.` : '') +
  (t.incomplete ? ` The trace is incomplete: ${t.incomplete}.` : '');

function tracePictures(t) {
  const top = Math.max(...t.calls.map(r => r.nbytes), 1);
  const waits = t.ranks.filter(r => ['p2p', 'wait', 'coll'].includes(r.layer));
  return [
    t.times ? callPicture('chart-call-time', 'Time in calls', t.calls, r => r.seconds, seconds) : null,
    callPicture('chart-call-count', 'Number of calls', t.calls, r => r.events, count),
    callPicture('chart-call-bytes', 'Bytes by call', t.calls, r => r.nbytes, bytes, byteTicks(top)),
    sizePicture(t),
    t.pairs.length ? pairPicture(t) : null,
    t.times ? gapPicture(t) : null,
    t.times ? rankPicture('chart-rank-time', 'Time in calls, by rank', t, t.ranks, r => r.seconds) : null,
    t.times ? rankPicture('chart-rank-waited', 'Waiting, by rank', t, waits, r => r.waited) : null];
}

sections.push({when: ({run}) => run.trace, make: ({run: {trace}}) => section('trace', 'Network and storage',
  traceText(trace), traceCards(trace),
  el('div', {className: 'pictures'}, ...tracePictures(trace).filter(Boolean)), ...traceTables(trace))});
