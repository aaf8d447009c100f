import { getVerbForm, KUBELET_VERBS, VERB_NAMES, type Verb } from '../verbs/index.ts'
import { EXIT_STATUSES, formatUsage, listOptionTerms, PURPOSE } from './help.ts'

/**
 * Formats the man page, man(7), from the same tables as the help.
 * @param version shown in the footer. There is no date, so that one version always has the same text.
 */
export function formatManualPage(version: string): string {
  return `${[
    `.TH MODEKEEP 8 "" "modekeep ${version}" "System administration"`,
    // No hyphenation and left-aligned, so that words appear as they are typed.
    '.nh',
    '.ad l',
    '.SH NAME',
    `modekeep \\- ${escapeRoff(PURPOSE)}`,
    '.SH SYNOPSIS',
    '.nf',
    ...VERB_NAMES.map((verb) => escapeRoff(formatUsage(verb))),
    '.fi',
    '.SH DESCRIPTION',
    escapeRoff(
      'A Kubernetes FlexVolume driver, and commands for the administrators of its nodes. This page describes the commands; ' +
        `most need root. kubelet calls ${KUBELET_VERBS.join(', ')} and reads one JSON document as the reply.`,
    ),
    formatParagraph(
      'Results are on standard output, errors on standard error. Colour and progress are shown on a terminal ' +
        'only, and no colour with NO_COLOR set. With --json a failure is a document of the kind "Error" on standard output.',
    ),
    '.SH COMMANDS',
    ...VERB_NAMES.flatMap(formatVerbSection),
    '.SH EXIT STATUS',
    ...EXIT_STATUSES.flatMap(([status, meaning]) => ['.TP', `.B ${status}`, escapeRoff(meaning)]),
    '.SH ENVIRONMENT',
    ...formatRoffEntry('MODEKEEP_CONFIG', "the node's configuration, instead of /etc/modekeep/config.json"),
    ...formatRoffEntry('NO_COLOR', 'no colour, if set to anything'),
    '.SH FILES',
    ...formatRoffEntry('/etc/modekeep/config.json', "the node's configuration"),
    ...formatRoffEntry('/var/lib/modekeep', 'records of mounts, and of every changed file as it was before'),
    ...formatRoffEntry('/var/log/modekeep/modekeep.log', 'the log, shown by modekeep logs'),
  ].join('\n')}\n`
}

function formatVerbSection(verb: Verb): string[] {
  const { text, examples, failure } = getVerbForm(verb)
  return [
    `.SS ${escapeRoff(formatUsage(verb))}`,
    ...text.map((words, index) => (index === 0 ? escapeRoff(words) : formatParagraph(words))),
    ...listOptionTerms(verb).flatMap(([term, what]) => formatRoffEntry(term, what)),
    ...(failure ? [formatParagraph(`Exit status 1 also where ${failure}.`)] : []),
    formatParagraph(examples.length > 1 ? 'Examples:' : 'Example:'),
    '.RS 4',
    '.nf',
    ...examples.map(escapeRoff),
    '.fi',
    '.RE',
  ]
}

function formatRoffEntry(term: string, text: string): string[] {
  return ['.TP', `.B ${escapeRoff(term)}`, escapeRoff(text)]
}

function formatParagraph(text: string): string {
  return `.PP\n${escapeRoff(text)}`
}

/** Escapes roff's control characters: backslashes, leading dots and quotes; also hyphens, so that they can be copied. */
function escapeRoff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/, '\\&')
    .replaceAll('"', '\\(dq')
}
