import { parseAst } from 'rolldown/parseAst'

/** One change of a file's text that its tests should notice. */
export interface Mutant {
  /** The enclosing function, a method as `Class.method`; `module` outside of all. */
  functionName: string
  operator: Operator
  /** Counts the mutants of this operator in this function, from 0. */
  index: number
  start: number
  end: number
  replacement: string
}

export type Operator = 'equality' | 'order' | 'logic' | 'not' | 'arithmetic' | 'boolean' | 'call' | 'condition'

const REPLACED: Readonly<Record<string, [Operator, string]>> = {
  '===': ['equality', '!=='],
  '!==': ['equality', '==='],
  '<': ['order', '<='],
  '<=': ['order', '<'],
  '>': ['order', '>='],
  '>=': ['order', '>'],
  '&&': ['logic', '||'],
  '||': ['logic', '&&'],
  '*': ['arithmetic', '/'],
  '/': ['arithmetic', '*'],
  '-': ['arithmetic', '+'],
  '%': ['arithmetic', '*'],
  '&': ['arithmetic', '|'],
  '|': ['arithmetic', '&'],
}

interface Node {
  type: string
  start: number
  end: number
  [key: string]: unknown
}

/** Finds the mutants of a TypeScript file, in the order of its text. */
export function findMutants(text: string): Mutant[] {
  const mutants: Mutant[] = []
  const add = (functionName: string, operator: Operator, { start, end }: Node, replacement: string) => {
    const index = mutants.filter((one) => one.functionName === functionName && one.operator === operator).length
    mutants.push({ functionName, operator, index, start, end, replacement })
  }
  const source = ({ start, end }: Node) => text.slice(start, end)
  const visit = (node: Node, functionName: string) => {
    const inside = nameFunction(node, functionName)
    if (node.type.startsWith('TS') && !HAS_CODE.has(node.type)) return
    if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') {
      const [operator, other] = REPLACED[node.operator as string] ?? []
      const [left, right] = [node.left as Node, node.right as Node]
      if (operator && other) add(inside, operator, node, `${source(left)} ${other} ${source(right)}`)
    } else if (node.type === 'UnaryExpression' && node.operator === '!') {
      add(inside, 'not', node, source(node.argument as Node))
    } else if (node.type === 'Literal' && typeof node.value === 'boolean') {
      add(inside, 'boolean', node, String(!node.value))
    } else if (node.type === 'ExpressionStatement' && isCall(node.expression as Node)) {
      add(inside, 'call', node, 'void 0')
    } else if (node.type === 'IfStatement') {
      const test = node.test as Node
      if (!NEGATED_ELSEWHERE.has(test.type)) add(inside, 'condition', test, `!(${source(test)})`)
    }
    for (const child of children(node)) visit(child, inside)
  }
  visit(parseAst(text, { lang: 'ts' }) as unknown as Node, 'module')
  return mutants.sort((a, b) => a.start - b.start || b.end - a.end)
}

/** Nodes of TypeScript's own that have code below them. */
const HAS_CODE: ReadonlySet<string> = new Set([
  'TSAsExpression',
  'TSNonNullExpression',
  'TSSatisfiesExpression',
  'TSParameterProperty',
])

/** Tests of these forms have mutants of their own. */
const NEGATED_ELSEWHERE: ReadonlySet<string> = new Set(['BinaryExpression', 'LogicalExpression', 'UnaryExpression'])

function isCall(expression: Node): boolean {
  if (expression.type === 'AwaitExpression') return isCall(expression.argument as Node)
  return expression.type === 'CallExpression' && (expression.callee as Node).type !== 'Super'
}

function nameFunction(node: Node, outer: string): string {
  const name = (key: string) => (node[key] as { name?: string } | null)?.name
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
      return name('id') ?? outer
    case 'MethodDefinition':
      return `${outer}.${name('key') ?? 'method'}`
    case 'VariableDeclarator': {
      const value = (node.init as Node | null)?.type ?? ''
      return /Function/.test(value) && outer === 'module' ? (name('id') ?? outer) : outer
    }
    default:
      return outer
  }
}

function children(node: Node): Node[] {
  const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'
  return Object.entries(node).flatMap(([key, value]) =>
    key === 'parent' ? [] : Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [],
  )
}
