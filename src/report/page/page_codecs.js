// SPDX-License-Identifier: BSD-3-Clause
// What codecs made of the variables, over all marks.
const rateText = r => r > 0 ? r.toFixed(2) : '–';
const errorText = e => e > 0 ? e.toExponential(2) : '0';

const codecs = ({run}) => section('codecs', 'Codecs',
  'What the blocks of each variable were stored as. Each block is decoded and checked before it counts; ' +
  'one that the setting does not fit is stored more strictly, or without loss.',
  table('Variables with codecs', [
    words('variable', v => v.name ?? '(all)'),
    words('codec', v => v.codec),
    words('bound', v => v.loss ?? '–'),
    numbers('blocks', count, v => v.blocks),
    numbers('in memory', bytes, v => v.nbytes),
    numbers('stored', bytes, v => v.stored),
    numbers('rate', rateText, v => v.rate),
    numbers('largest error', errorText, v => v.error),
    numbers('stricter', count, v => v.stricter),
    numbers('bound not kept', count, v => v.bound),
    numbers('special values', count, v => v.special),
    numbers('no smaller', count, v => v.size),
    numbers('values aside', count, v => v.aside),
  ], run.codecs, {open: true}));

sections.push({when: ({run}) => run.codecs.length, make: codecs});
