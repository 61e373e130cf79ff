// SPDX-License-Identifier: BSD-3-Clause
// What changed from mark to mark, by rank and by variable.
const MAX_CELLS = 30000; // of the heat map
const MAX_VARIABLES = TONES.length; // with a colour of their own

// One row for each rank, or for groups of neighbours, as the log has it; else one for all.
const rankShares = m => m.ranks.length ? m.ranks : [share(m)];

function heatConfig(run, marks) {
  const rows = Math.max(...marks.map(m => rankShares(m).length));
  const color = heatColors();
  const most = Math.max(...run.legs.map(l => l.ranks));
  const name = (r, m) => rankName(r, rankShares(m).length, run.legs[m.leg - 1].ranks);
  const shares = marks.map(rankShares);
  return {
    type: 'bar',
    data: {labels: marks.map(m => m.version), datasets: Array.from({length: rows}, (_, r) => ({
      label: rankName(r, rows, most), keys: r === 0, data: marks.map(() => 1),
      shares: shares.map(s => s[r]), backgroundColor: shares.map(s => color(s[r])), categoryPercentage: 1,
      barPercentage: 1, borderColor: css('card'), borderWidth: marks.length * rows > 2000 ? 0 : 1}))},
    options: {
      scales: {x: markAxis({stacked: true}),
        y: heatAxis(rows, most)},
      plugins: {tooltip: {callbacks: {
        title: items => `mark ${items[0].label}, ${name(items[0].datasetIndex, marks[items[0].dataIndex])}`,
        label: item => `${percent(item.dataset.shares[item.dataIndex])} of the state changed`}}}}};
}

// What changed in each variable, where the log tells it.
function variableParts(marks, few) {
  const totals = new Map();
  few.forEach(m => m.variables.forEach(v => totals.set(v.name, (totals.get(v.name) || 0) + v.changed)));
  if (!totals.size) return [];
  const all = [...totals.keys()].sort((a, b) => totals.get(b) - totals.get(a));
  const named = all.length > MAX_VARIABLES ? all.slice(0, MAX_VARIABLES) : all;
  const changed = name => m => m.variables.find(v => v.name === name)?.changed ?? null;
  const others = m => sum(m.variables.filter(v => !named.includes(v.name)), v => v.changed);
  const sets = named.map((name, i) => ({label: name, tone: TONES[i], value: changed(name)}));
  if (all.length > named.length)
    sets.push({label: `${all.length - named.length} others`, tone: 'soft', value: others});
  const rows = marks.flatMap(m => m.variables.map(v => ({...v, version: m.version})));
  const ratio = x => x == null ? '–' : percent(1 + x);
  return [
    picture('chart-variables', 'Changed, by variable', overMarks(few, sets, bytes,
      {stacked: true, y: {ticks: {stepSize: byteStep(few)}}}),
    {legend: legend(sets.map(s => [s.tone, s.label]))}),
    table('Variables', [
      numbers('mark', count, v => v.version),
      words('variable', v => v.name),
      numbers('size', bytes, v => v.nbytes),
      {head: 'pages written', text: v => v.tracked ? bytes(v.written) : '–', key: v => v.written},
      numbers('digested', bytes, v => v.hashed),
      numbers('changed', bytes, v => v.changed),
      numbers('stored', bytes, v => v.stored),
      words('way', v => v.way),
      {head: 'of a full one: predicted', text: v => ratio(v.predicted), key: v => v.predicted ?? -9},
      {head: 'measured', text: v => ratio(v.measured), key: v => v.measured ?? -9},
    ], rows)];
}

function changes({run, marks, few}) {
  const rows = Math.max(...marks.map(m => rankShares(m).length));
  return section('changes', 'What changed',
    'The share of the state that differs from the mark before: only that is written.' + fewNote(marks, few),
    picture('chart-changes', 'Changed share by rank and mark',
      heatConfig(run, few.slice(-Math.floor(MAX_CELLS / rows))), {
      height: `${Math.min(Math.max(rows * 1.5 + 5, 9), 32)}rem`,
      legend: heatScale('0 %', '100 %')}),
    table('Changed share', [
      numbers('mark', count, m => m.version),
      numbers('all ranks', percent, share),
      ...(rows > 1 ? Array.from({length: rows}, (_, r) => ({
        head: rankName(r, rows, Math.max(...run.legs.map(l => l.ranks))), text: m => percent(rankShares(m)[r]), key: m => rankShares(m)[r] ?? -1})) : []),
    ], marks), ...variableParts(marks, few));
}

sections.push({when: view => view.few.length, make: changes});
sections.push({when: view => !view.few.length, make: () => section('none', 'Marks', 'None to show.')});
