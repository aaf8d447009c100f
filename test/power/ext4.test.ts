import { listCombinations } from './combinations.ts'
import { describePowerCuts } from './suite.ts'

for (const combination of listCombinations('ext4')) describePowerCuts(combination)
