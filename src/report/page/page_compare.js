// SPDX-License-Identifier: BSD-3-Clause
// Two runs compared.
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
      numbers('mark', count, r => r.version),
      words('variable', r => r.variable),
      words('verdict', r => r.verdict),
      words('bound', r => r.bound),
      numbers('values', count, r => r.nvalues),
      numbers('differ', count, r => r.ndiffering),
      {head: 'largest', text: r => r.max == null ? '–' : round(r.max), key: r => r.max ?? -1},
      {head: 'root mean square', text: r => r.rms == null ? '–' : round(r.rms), key: r => r.rms ?? -1},
      {head: 'rank', text: r => r.where ? count(r.where.rank) : '–', key: r => r.where ? r.where.rank : -1},
      words('first index', r => r.where ? r.where.index.join(', ') : '–'),
      {head: 'first value', text: r => r.where ? r.where.first : '–'},
      {head: 'second value', text: r => r.where ? r.where.second : '–'},
    ], c.rows));
}

sections.push({when: () => data.comparison, make: () => comparison(data.comparison)});
