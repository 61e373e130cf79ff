// SPDX-License-Identifier: BSD-3-Clause
// Which marks are shown, and the numbers at the top.
const entries = [...data.runs, ...(data.studies || [])]; // what can be chosen
const state = {run: Math.max(entries.length - 1, 0), leg: 0, levels: new Set(LEVELS)};

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


const fewNote = (marks, few) => few.length < marks.length
  ? ` Pictures show the newest ${few.length} of ${marks.length} marks, tables all of these.` : '';

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
  const held = run.totals.held;
  const whole = end ? end - first : null;
  return el('dl', {className: 'cards'},
    card('State', run.finished ? 'finished' : 'unfinished',
      last ? `last leg: ${last.end}, ${plural(last.ranks, 'rank')}` : '', run.finished ? 'good' : ''),
    card('Took', seconds(whole), `began ${date(first)}`),
    card('Legs', count(legs.length), `${plural(Math.max(legs.length - 1, 0), 'restart')}`),
    card('Marks', count(run.totals.marks), `${run.totals.kept} kept now`),
    card('Work lost', seconds(lost), whole ? `${percent(lost / whole)} of the time` : '',
      lost > 0 ? 'bad' : ''),
    card('Coming back', seconds(restart), whole ? `${percent(restart / whole)} of the time` : ''),
    card('Held by marks', seconds(held), whole ? `${percent(held / whole)} of the time` : ''),
    card('Written', bytes(run.totals.written), `for ${bytes(run.totals.nbytes)} of state`));
}

// What is left out of a long run: its page must still open at once.
function choiceNote({totals, plan}) {
  const text = [];
  if (totals.shown < totals.marks)
    text.push(`Of ${totals.marks} marks ${totals.shown} are on this page: the newest, the first and the last of ` +
      'each leg, those that did not get to a level, and of 256 stretches of the run the first mark, and those ' +
      'that held the program longest, wrote most and came latest. The numbers above count all.');
  if (totals.failed_shown < totals.failed)
    text.push(`${totals.failed} did not get to a level, of which ${totals.failed_shown} are shown.`);
  if (plan.tuned.length < totals.tuned)
    text.push(`Of ${totals.tuned} words of the planner ${plan.tuned.length} are shown.`);
  return text.length ? el('p', {className: 'remark', id: 'choice'}, text.join(' ')) : null;
}
