import type { OptionRule } from './options.ts'

type Entry = readonly [name: string, rule: OptionRule]

/** Options without a value. */
export function words(...names: string[]): Entry[] {
  return names.map((name) => [name, { pattern: new RegExp(`^${name}$`), example: name }])
}

/** Options with a decimal number of at most ten digits. */
export function numbers(examples: Readonly<Record<string, number>>): Entry[] {
  return Object.entries(examples).map(([name, example]) => [
    name,
    { pattern: new RegExp(`^${name}=(0|[1-9][0-9]{0,9})$`), example: `${name}=${example}` },
  ])
}

const KERBEROS = ['krb5', 'krb5i', 'krb5p']

/** `sec`, of which Kerberos is for the node's administrator to allow. */
export function security(...values: string[]): Entry[] {
  const why = 'which would use the Kerberos identity of this node'
  return choices({ sec: values }).map(([name, rule]) => [name, { ...rule, onlyNamed: { values: KERBEROS, why } }])
}

/** Options with the permission bits of files. */
export function modes(...names: string[]): Entry[] {
  return names.map((name) => [name, { pattern: new RegExp(`^${name}=0?[0-7]{3,4}$`), example: `${name}=0770` }])
}

/** Options with one of a few values. */
export function choices(values: Readonly<Record<string, readonly string[]>>): Entry[] {
  return Object.entries(values).map(([name, [first = '', ...rest]]) => {
    const any = [first, ...rest].map((value) => value.replaceAll('.', '\\.')).join('|')
    return [
      name,
      { pattern: new RegExp(`^${name}=(${any})$`), example: [first, ...rest].map((v) => `${name}=${v}`).join(' or ') },
    ]
  })
}
