import { KUBELETS_VERBS, VERB_NAMES, type Verb, verbForm } from '../verbs/index.ts'
import { EXIT_STATUSES, optionTerms, PURPOSE, usageOf } from './help.ts'

/**
 * The man page, man(7), from what help is made of.
 * @param version shown at its foot; there is no date, so that one version is always the same text
 */
export function manualPage(version: string): string {
  return `${[
    `.TH MODEKEEP 8 "" "modekeep ${version}" "System administration"`,
    // Words as they are typed: no hyphenation, left-aligned.
    '.nh',
    '.ad l',
    '.SH NAME',
    `modekeep \\- ${escaped(PURPOSE)}`,
    '.SH SYNOPSIS',
    '.nf',
    ...VERB_NAMES.map((verb) => escaped(usageOf(verb))),
    '.fi',
    '.SH DESCRIPTION',
    escaped(
      'A Kubernetes FlexVolume driver, and commands for the administrators of its nodes. This page describes the commands; ' +
        `most need root. kubelet calls ${KUBELETS_VERBS.join(', ')} and reads one JSON document as the reply.`,
    ),
    paragraph(
      'Results are on standard output, errors on standard error. Colour and progress are shown on a terminal ' +
        'only, and no colour with NO_COLOR set. With --json a failure is a document of the kind "Error" on standard output.',
    ),
    '.SH COMMANDS',
    ...VERB_NAMES.flatMap(aboutVerb),
    '.SH EXIT STATUS',
    ...EXIT_STATUSES.flatMap(([status, meaning]) => ['.TP', `.B ${status}`, escaped(meaning)]),
    '.SH ENVIRONMENT',
    ...entry('MODEKEEP_CONFIG', "the node's configuration, instead of /etc/modekeep/config.json"),
    ...entry('NO_COLOR', 'no colour, if set to anything'),
    '.SH FILES',
    ...entry('/etc/modekeep/config.json', "the node's configuration"),
    ...entry('/var/lib/modekeep', 'records of mounts, and of every changed file as it was before'),
    ...entry('/var/log/modekeep/modekeep.log', 'the log, shown by modekeep logs'),
  ].join('\n')}\n`
}

function aboutVerb(verb: Verb): string[] {
  const { text, examples, failure } = verbForm(verb)
  return [
    `.SS ${escaped(usageOf(verb))}`,
    ...text.map((words, index) => (index === 0 ? escaped(words) : paragraph(words))),
    ...optionTerms(verb).flatMap(([term, what]) => entry(term, what)),
    ...(failure ? [paragraph(`Exit status 1 also where ${failure}.`)] : []),
    paragraph(examples.length > 1 ? 'Examples:' : 'Example:'),
    '.RS 4',
    '.nf',
    ...examples.map(escaped),
    '.fi',
    '.RE',
  ]
}

function entry(term: string, text: string): string[] {
  return ['.TP', `.B ${escaped(term)}`, escaped(text)]
}

function paragraph(text: string): string {
  return `.PP\n${escaped(text)}`
}

/** What roff would take for its own: backslashes, dots and quotes where a line begins; and hyphens, to be typed. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&')
    .replaceAll('"', '\\(dq')
}
