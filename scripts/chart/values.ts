import * as fs from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { CHART_DIRECTORY } from './files.ts'

/** A value of the chart that a user sets. */
export interface ChartValue {
  /** As after `--set`, such as `doors.csi.enabled`. */
  path: string
  default: unknown
  /** The comment above the key; '' if there is none. */
  meaning: string
}

/** Maps that are values as a whole, although their defaults have keys. */
const WHOLE_VALUES = ['config']

/** Returns the values of values.yaml in its order. A comment of one line above a key is the key's meaning. */
export function readChartValues(): ChartValue[] {
  const text = fs.readFileSync(join(CHART_DIRECTORY, 'values.yaml'), 'utf8')
  const comments = parseKeyComments(text)
  return listValues(parse(text), [])

  function listValues(value: Record<string, unknown>, above: readonly string[]): ChartValue[] {
    return Object.entries(value).flatMap(([key, item]) => {
      const path = [...above, key].join('.')
      if (isPlainMap(item) && Object.keys(item).length > 0 && !WHOLE_VALUES.includes(path))
        return listValues(item, [...above, key])
      return [{ path, default: item, meaning: comments.get(path) ?? '' }]
    })
  }
}

const isPlainMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const INDENT_SPACES = 2

function parseKeyComments(text: string): Map<string, string> {
  const comments = new Map<string, string>()
  const keys: string[] = []
  let comment = ''
  for (const line of text.split('\n')) {
    const [, spaces = '', key] = /^( *)([A-Za-z]+):/.exec(line) ?? []
    if (key !== undefined) {
      keys.splice(spaces.length / INDENT_SPACES, keys.length, key)
      if (comment !== '') comments.set(keys.join('.'), comment)
    }
    comment = /^ *# (.*)$/.exec(line)?.[1] ?? ''
  }
  return comments
}
