import * as fs from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod/mini'
import { isOperatorVerb } from '../../src/cli/commands/index.ts'
import { ROOT } from './pages.ts'

const FOLDER = join(ROOT, '.github/ISSUE_TEMPLATE')
const read = (name: string) => fs.readFileSync(join(FOLDER, name), 'utf8')

const text = z.string().check(z.minLength(1))
const label = { label: text, description: z.optional(text) }
const filled = { placeholder: z.optional(text), value: z.optional(text) }
const answered = {
  id: text.check(z.regex(/^[a-zA-Z0-9_-]+$/)),
  validations: z.optional(z.strictObject({ required: z.boolean() })),
}

/** GitHub's form schema, without keys that no form of modekeep needs. An unknown key makes a form invalid. */
const FORM = z.strictObject({
  name: text,
  description: text,
  labels: z.array(text).check(z.minLength(1)),
  body: z.array(
    z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('markdown'), attributes: z.strictObject({ value: text }) }),
      z.strictObject({ type: z.literal('input'), attributes: z.strictObject({ ...label, ...filled }), ...answered }),
      z.strictObject({
        type: z.literal('textarea'),
        attributes: z.strictObject({
          ...label,
          ...filled,
          render: z.optional(z.enum(['text', 'json', 'yaml', 'shell'])),
        }),
        ...answered,
      }),
      z.strictObject({
        type: z.literal('dropdown'),
        attributes: z.strictObject({ ...label, options: z.array(text).check(z.minLength(1)) }),
        ...answered,
      }),
      z.strictObject({
        type: z.literal('checkboxes'),
        attributes: z.strictObject({
          ...label,
          options: z.array(z.strictObject({ label: text, required: z.optional(z.boolean()) })).check(z.minLength(1)),
        }),
        id: answered.id,
      }),
    ]),
  ),
})

const CHOOSER = z.strictObject({
  blank_issues_enabled: z.boolean(),
  contact_links: z.array(z.strictObject({ name: text, url: z.url({ protocol: /^https$/ }), about: text })),
})

/** Returns the faults of a form that GitHub would not show. */
function findFormFaults(form: unknown): string[] {
  const { success, data, error } = z.safeParse(FORM, form)
  if (!success) return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  const fields = data.body.flatMap((field) => (field.type === 'markdown' ? [] : [field]))
  const repeated = (names: readonly string[]) => names.filter((name, at) => names.indexOf(name) !== at)
  return [
    ...(fields.length === 0 ? ['no field can be filled in'] : []),
    ...repeated(fields.map(({ id }) => id)).map((id) => `the id ${id} is not unique`),
    ...repeated(fields.map(({ attributes }) => attributes.label)).map((name) => `the label ${name} is not unique`),
    ...fields.flatMap((field) => {
      if (field.type !== 'dropdown' && field.type !== 'checkboxes') return []
      const options = field.attributes.options.map((option) => (typeof option === 'string' ? option : option.label))
      return repeated(options).map((option) => `the option ${option} is not unique`)
    }),
  ]
}

const FORMS = fs.readdirSync(FOLDER).filter((name) => name !== 'config.yml')
const bug = z.parse(FORM, parse(read('bug.yml')))
const bugFields = bug.body.flatMap((field) => (field.type === 'markdown' ? [] : [field]))

describe('the issue forms', () => {
  it.each(FORMS)('%s has known keys and types, unique ids and labels, and an issue label', (name) => {
    expect(findFormFaults(parse(read(name)))).toEqual([])
  })

  it.each([
    ['an unknown type', { type: 'select', id: 'a', attributes: { label: 'A' } }],
    ['an unknown key', { type: 'input', id: 'a', attributes: { label: 'A', lable: 'B' } }],
    ['no label', { type: 'textarea', id: 'a', attributes: {} }],
    ['an id with a blank', { type: 'input', id: 'a b', attributes: { label: 'A' } }],
    ['no option', { type: 'dropdown', id: 'a', attributes: { label: 'A', options: [] } }],
    ['the same option twice', { type: 'dropdown', id: 'a', attributes: { label: 'A', options: ['x', 'x'] } }],
    ['an id of another field', { type: 'input', id: 'version', attributes: { label: 'A' } }],
    ['a label of another field', { type: 'input', id: 'a', attributes: { label: 'Container runtime' } }],
  ])('a field with %s is a fault', (_fault, field) => {
    expect(findFormFaults({ ...bug, body: [...bug.body, field] })).toHaveLength(1)
  })

  it('the bug form requires the versions, the door and doctor, and the notice about the support bundle', () => {
    const required = bugFields.filter((field) => field.type === 'checkboxes' || field.validations?.required)
    expect(required.map(({ id }) => id)).toEqual([
      'version',
      'kubernetes',
      'runtime',
      'door',
      'steps',
      'doctor',
      'checked',
    ])
    const bundle = bugFields.find(({ id }) => id === 'bundle')
    expect(bundle?.attributes.description).toContain('lists the path of each file first')
    expect(bundle?.attributes.description).toContain('Look through it before you attach it')
  })

  it('name only commands that modekeep has', () => {
    const verbs = FORMS.flatMap((name) => [...read(name).matchAll(/`modekeep ([a-z-]+)/g)].map(([, verb = '']) => verb))
    expect(verbs).toEqual(expect.arrayContaining(['doctor', 'support-bundle', 'version']))
    expect(verbs.filter((verb) => !isOperatorVerb(verb))).toEqual([])
  })

  it('are the only way to open an issue, and lead reports of vulnerabilities to SECURITY.md', () => {
    const chooser = z.parse(CHOOSER, parse(read('config.yml')))
    expect(chooser.blank_issues_enabled).toBe(false)
    expect(chooser.contact_links.some(({ about }) => about.includes('SECURITY.md'))).toBe(true)
    expect(fs.existsSync(join(ROOT, 'SECURITY.md'))).toBe(true)
  })
})
