// Runs cases of the conformance suite through a cache, from the folder in which scripts/setup-tests has installed it:
//
//     node run.mjs FOLDER
//
// First it prints where its origin listens. Then, for each line `URL [ID...]` of its input, it runs these cases (all
// without an ID) through the cache at the URL, and prints a line for each, and `end`:
//
//     ID KIND WORD REASON
//
// KIND is required, optimal, or check (a question without a right answer). WORD is yes, no, setup (the case could not
// be set up), or dependency (a case that it builds on is not yes).

import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import readline from 'node:readline'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { cases as ours, correct } from './cases.mjs'

const suite = fs.realpathSync(path.join(process.argv[2], 'node_modules', 'http-cache-tests'))
const load = name => import(pathToFileURL(path.join(suite, name)))
const handlers = {
  config: (await load('server/handle-config.mjs')).default,
  state: (await load('server/handle-state.mjs')).default,
  test: (await load('server/handle-test.mjs')).default
}
const config = await load('client/config.mjs')
const { makeCacheTest, testResults } = await load('client/test.mjs')
const suites = (await load('tests/index.mjs')).default
const fetch = createRequire(path.join(suite, 'package.json'))('node-fetch')

// The suite reports what it does in colours.
console.log = () => {}
const print = text => fs.writeSync(1, `${text}\n`)

// What browsers alone can do is left out.
const theirs = suites.flatMap(group => group.tests).filter(test => !test.browser_only)
const cases = [...theirs.map(correct), ...ours]

// Cases wait three seconds for things to become stale: many wait together, but not so many that others come too late.
const CASES_AT_ONCE = 60

// The origin. The suite's own reads its port from npm.
const origin = http.createServer((request, response) => {
  const [, name, ...rest] = new URL(request.url, 'http://localhost').pathname.split('/')
  const handler = handlers[name]
  if (handler) {
    handler(rest, request, response)
  } else {
    response.writeHead(404).end()
  }
})
origin.listen(0, '127.0.0.1', () => print(`origin ${origin.address().port}`))

function word (test) {
  const result = testResults[test.id]
  if (result === undefined) return 'missing'
  const isMet = id => word(cases.find(other => other.id === id)) === 'yes'
  if (!(test.depends_on ?? []).every(isMet)) return 'dependency'
  if (result === true) return 'yes'
  return result[0] === 'Setup' ? 'setup' : 'no'
}

async function run (url, ids) {
  config.setFetch(fetch)
  config.setBaseUrl(url)
  config.setUseBrowserCache(false)
  const chosen = ids.length === 0 ? cases : cases.filter(test => ids.includes(test.id))
  chosen.forEach(test => delete testResults[test.id])
  for (let start = 0; start < chosen.length; start += CASES_AT_ONCE) {
    await Promise.all(chosen.slice(start, start + CASES_AT_ONCE).map(makeCacheTest))
  }
  for (const test of chosen) {
    const result = testResults[test.id]
    const reason = result === true ? '' : String(result?.[1]).replaceAll('\n', ' ')
    print(`${test.id} ${test.kind ?? 'required'} ${word(test)} ${reason}`)
  }
  print('end')
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [url, ...ids] = line.split(' ')
  await run(url, ids)
}
process.exit()
