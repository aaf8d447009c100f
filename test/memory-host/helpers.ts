import type { HelperInvocation, HelperRunner } from '../../src/kernel/helpers.ts'
import type { MemoryWorld } from './world.ts'

/** Runs no program: every order is recorded, and is an effect of the world. */
export function memoryHelpers(world: MemoryWorld, orders: HelperInvocation[] = []): HelperRunner {
  return {
    async run(order) {
      world.act(`run ${order.program}`)
      orders.push(order)
    },
  }
}
