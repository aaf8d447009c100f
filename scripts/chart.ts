import { join, resolve } from 'node:path'
import fs from 'fs-extra'
import { writeChart } from './chart/files.ts'

// Makes dist/helm/modekeep, the complete chart of this checkout: driver/helm/modekeep lacks the manifests that it renders.
const chartOutput = resolve(join(import.meta.dirname, '../dist/helm/modekeep'))
fs.removeSync(chartOutput)
writeChart(chartOutput)
console.log(chartOutput)
