// Yasqe in a browser, on a page of another origin: its own query() reads the server's answers where
// --cors names the origin, and gets none where it does not.
import { createServer } from 'node:http'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import puppeteer from 'puppeteer-core'
import { LITERALS, passed, same, text } from './check.mjs'

const [server, data, port] = process.argv.slice(2)
const EX = 'http://example.org/'
const BUILD = new URL('./node_modules/@zazuko/yasqe/build/', import.meta.url)
const PAGE = `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="yasqe.min.css">
<script src="yasqe.min.js"></script><div id="yasqe"></div>
<script>const yasqe = new Yasqe(document.getElementById('yasqe'), { persistenceId: null })</script>`
const TYPES = { js: 'text/javascript', css: 'text/css' }

// The page on a port of loopback; 0 is any, which the server does not know.
function serve (port) {
  const pages = createServer((request, response) => {
    const name = request.url.slice(1)
    if (name === '') return response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
    if (!/^yasqe\.min\.(js|css)$/.test(name)) return response.writeHead(404).end()
    response.writeHead(200, { 'content-type': TYPES[name.split('.').pop()] })
    response.end(readFileSync(new URL(name, BUILD)))
  })
  return new Promise((resolve, reject) => {
    pages.once('error', reject).listen(port, '127.0.0.1', () => resolve(pages))
  })
}

const put = await fetch(`${server}/graphs`, {
  method: 'PUT', headers: { 'content-type': 'application/trig' }, body: readFileSync(data)
})
same('the data is stored', 204, put.status)

const profile = mkdtempSync(join(tmpdir(), 'yasqe-'))
const allowed = await serve(Number(port))
const other = await serve(0)
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  userDataDir: profile,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync']
})

// A query or update as Yasqe sends it, and the answer or the error that the page sees.
async function run (page, text, config) {
  return page.evaluate(async (text, config) => {
    yasqe.setValue(text)
    try {
      const answer = await yasqe.query(config)
      return { status: answer.status, type: answer.headers.get('content-type'), content: answer.content }
    } catch (error) {
      return { error: error.message }
    }
  }, text, config)
}

try {
  const page = await browser.newPage()
  await page.goto(`http://127.0.0.1:${port}/`)
  const graph = `CONSTRUCT { ?s ?p ?o } { GRAPH <${EX}g1> { ?s ?p ?o } }`
  const terms = `SELECT ?p ?o { <${EX}ann> ?p ?o FILTER isLiteral(?o) }`
  for (const method of ['GET', 'POST']) {
    const config = { endpoint: `${server}/sparql`, method }
    const rows = await run(page, terms, config)
    same(`${method}: select`, [200, 'application/sparql-results+json'], [rows.status, rows.type])
    const literals = JSON.parse(rows.content).results.bindings.map(({ p, o }) => `${p.value} ` + text({
      termType: 'Literal',
      value: o.value,
      language: o['xml:lang'],
      datatype: { value: o.datatype ?? 'http://www.w3.org/2001/XMLSchema#string' }
    }))
    same(`${method}: terms`, LITERALS, literals.sort())
    const ask = await run(page, `ASK { ?s <${EX}age> 30 }`, config)
    same(`${method}: ask`, true, JSON.parse(ask.content).boolean)
    const triples = await run(page, graph, config)
    same(`${method}: construct`, 2, triples.content.trim().split('\n').length)
    const failed = await run(page, 'SELECT * { ?s ?p', config)
    same(`${method}: a wrong query, with its message`, true, /^line 1, column/.test(failed.error))
    const known = { ...config, headers: { Authorization: 'Bearer none', 'Cache-Control': 'no-cache' } }
    same(`${method}: fields of the page`, 200, (await run(page, 'ASK {}', known)).status)
    const credentials = await run(page, 'ASK {}', { ...config, withCredentials: true })
    same(`${method}: with credentials`, 200, credentials.status)
  }
  const write = { endpoint: `${server}/update` }
  const update = await run(page, 'INSERT DATA { <urn:page> <urn:says> "1 🎿" }', write)
  same('update', 200, update.status)
  const written = await run(page, 'ASK { <urn:page> <urn:says> "1 🎿" }', { endpoint: `${server}/query` })
  same('what it wrote', true, JSON.parse(written.content).boolean)

  const stranger = await browser.newPage()
  await stranger.goto(`http://127.0.0.1:${other.address().port}/`)
  for (const method of ['GET', 'POST']) {
    const config = { endpoint: `${server}/sparql`, method }
    same(`${method} from another origin`, { error: 'Failed to fetch' }, await run(stranger, 'ASK {}', config))
  }
  const change = await run(stranger, 'INSERT DATA { <urn:stranger> <urn:says> 1 }', write)
  same('update from another origin', { error: 'Failed to fetch' }, change)
  const nothing = await run(page, 'ASK { <urn:stranger> ?p ?o }', { endpoint: `${server}/query` })
  same('it wrote nothing', false, JSON.parse(nothing.content).boolean)
} finally {
  await browser.close()
  allowed.close()
  other.close()
  rmSync(profile, { recursive: true, force: true })
}
passed()
