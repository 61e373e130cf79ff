// SPDX-License-Identifier: BSD-3-Clause
// Where marks of a program with regions begin, what they keep and why, and what the check has found.
const kept = m => table(`What mark ${m.version} keeps`, [
  words('variable', v => v.name),
  numbers('kept', bytes, v => v.nbytes),
  words('why', v => v.why),
], m.variables, {open: true});

const places = m => table('Places compared', [
  words('place', s => s.name),
  numbers('a mark would keep', bytes, s => s.mean),
  numbers('spread', bytes, s => s.spread),
  numbers('visits', count, s => s.visits),
  numbers('longest gap', count, s => s.gap),
], m.sites, {open: true});

const found = list => table('Declarations that do not hold', [
  words('site', f => f.site),
  words('variable', f => f.variable),
  words('kind', f => f.kind),
  numbers('first index', count, f => f.index),
  numbers('elements', count, f => f.count),
  numbers('rank', count, f => f.rank),
], list, {open: true});

const placeText = m => `Marks begin at '${m.place}', ${m.named ? 'as the program asks' : 'the best place so far'}, and ` +
  `keep ${bytes(m.kept)} of ${bytes(m.whole)}, ${percent(m.kept / m.whole)}.`;

// The line of code that makes the choice explicit.
const explicit = m => m.named ? null : el('pre', {},
  `cairn_region_options o = {.struct_bytes = sizeof o, .place = ${JSON.stringify(m.place)}};`);

const regions = ({run}) => {
  const {mark, findings} = run.regions;
  return section('regions', 'Regions', mark ? placeText(mark) : 'No mark of regions has been taken.',
    mark && explicit(mark), mark && kept(mark), mark && mark.sites.length ? places(mark) : null,
    findings.length ? found(findings) : null);
};

sections.push({when: ({run}) => run.regions.mark || run.regions.findings.length, make: regions});
