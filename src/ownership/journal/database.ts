import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'

type Row = Record<string, unknown>

/** SQLite with its statements prepared once and its integers as bigint. */
export class Database {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values)
  }

  all(sql: string): Row[] {
    return this.#statement(sql).all()
  }

  /** One row at a time, where there may be many. */
  each(sql: string): Iterable<Row> {
    return this.#statement(sql).iterate()
  }

  /** @returns the last row's id */
  run(sql: string, ...values: SQLInputValue[]): bigint {
    return this.#statement(sql).run(...values).lastInsertRowid as bigint
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  transaction(work: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      work()
      this.#database.exec('COMMIT')
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw error
    }
  }

  /** All that is read is of one moment, whoever writes meanwhile. */
  snapshot(work: () => void): void {
    this.#database.exec('BEGIN')
    try {
      work()
    } finally {
      this.#database.exec('END')
    }
  }

  /** A transaction that need not survive a crash of the node: it is not synced, only atomic and in its order. */
  relaxed(work: () => void): void {
    this.#database.exec('PRAGMA synchronous = NORMAL')
    try {
      this.transaction(work)
    } finally {
      this.#database.exec('PRAGMA synchronous = FULL')
    }
  }

  close(): void {
    this.#database.close()
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (!statement) {
      statement = this.#database.prepare(sql)
      statement.setReadBigInts(true)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}
