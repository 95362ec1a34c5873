// sparql-http-client: queries by GET and POST, updates, and the graph store, streamed and parsed.
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import ParsingClient from 'sparql-http-client/ParsingClient.js'
import StreamClient from 'sparql-http-client'
import { LITERALS, fails, passed, same, text } from './check.mjs'

const [server, data] = process.argv.slice(2)
const EX = 'http://example.org/'
const MANY = 100_000
const urls = { endpointUrl: `${server}/query`, updateUrl: `${server}/update`, storeUrl: `${server}/graphs` }
const client = new StreamClient(urls)
const parsing = new ParsingClient(urls)
const { factory } = client
const node = name => factory.namedNode(EX + name)

const put = await fetch(`${server}/graphs`, {
  method: 'PUT', headers: { 'content-type': 'application/trig' }, body: readFileSync(data)
})
same('the data is stored', 204, put.status)
const store = [client.store, parsing.store]
same('only the stream client has a store', [true, false], store.map(Boolean))

for (const operation of ['get', 'postUrlencoded', 'postDirect']) {
  const options = { operation }
  const query = `SELECT ?p ?o { <${EX}ann> ?p ?o FILTER isLiteral(?o) }`
  const rows = await parsing.query.select(query, options)
  same(`${operation}: terms`, LITERALS, rows.map(row => `${row.p.value} ${text(row.o)}`).sort())
  const streamed = await client.query.select(query, options).toArray()
  same(`${operation}: streamed`, LITERALS, streamed.map(row => `${row.p.value} ${text(row.o)}`).sort())
  same(`${operation}: ask`, true, await parsing.query.ask(`ASK { ?s <${EX}age> 30 }`, options))
  same(`${operation}: ask, no`, false, await client.query.ask(`ASK { ?s <${EX}age> 31 }`, options))
  const graph = 'CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }'
  same(`${operation}: construct`, 4, (await parsing.query.construct(graph, options)).size)
  const quads = await client.query.construct(graph, options).toArray()
  same(`${operation}: streamed construct`, 4, quads.length)
  same(`${operation}: a blank node`, ['BlankNode'],
    quads.filter(quad => quad.object.value === 'in a graph').map(quad => quad.subject.termType))
  const described = await parsing.query.construct(`DESCRIBE <${EX}Straße>`, options)
  same(`${operation}: describe`, [`${EX}größe/雪 ${EX}a?b=c&d=%20#e`],
    [...described].map(quad => `${quad.predicate.value} ${quad.object.value}`))
  const unbound = await parsing.query.select('SELECT ?a ?b { BIND("" AS ?a) }', options)
  same(`${operation}: unbound`, [['a', '']], Object.entries(unbound[0]).map(([k, v]) => [k, v.value]))
  const named = await parsing.query.select('SELECT ?s { ?s ?p ?o }', {
    operation, parameters: { 'default-graph-uri': `${EX}g1` }
  })
  same(`${operation}: default-graph-uri`, 2, named.length)
  const error = await fails(`${operation}: a wrong query`,
    () => parsing.query.select('SELECT nonsense', options))
  same(`${operation}: its message`, true, error.status === 400 && /line 1, column 8/.test(error.message))
}

await parsing.query.update(`INSERT DATA { GRAPH <urn:u> { <urn:a> <urn:b> "1\\n\\"2\\" 🎿"@en, 1.0 } }`)
same('update', true, await client.query.ask('ASK FROM <urn:u> { ?s ?p "1\\n\\"2\\" 🎿"@en, 1.0 }'))
await client.query.update('DELETE WHERE { GRAPH <urn:u> { ?s ?p ?o } }')
same('delete', false, await client.query.ask('ASK { GRAPH <urn:u> { ?s ?p ?o } }'))
await fails('a wrong update', () => client.query.update('INSERT nonsense'))

const stored = async graph => (await client.store.get(graph).toArray())
  .map(quad => [quad.subject, quad.predicate, quad.object].map(text).join(' ') + ` in ${quad.graph.value}`).sort()
const cem = await client.store.get(node('граф')).toArray()
same('get of a graph', 2, cem.length)
same('in that graph', [`${EX}граф`], [...new Set(cem.map(quad => quad.graph.value))])
const before = await client.store.get(factory.defaultGraph()).toArray()
same('get of the default graph', 25, before.length)

const graph = node('a new graph?a=b&c').value.replaceAll(' ', '%20')
const target = factory.namedNode(graph)
const quad = (n, value) => factory.quad(node(`s${n}`), node('p'), value)
const hard = factory.literal('a "b"\r\n\t\\ \u0001 🎿 \'x\'', 'en-gb')
await client.store.put(Readable.from([quad(1, hard), quad(2, node('größe'))]), { graph: target })
same('put', [`${EX}s1 ${EX}p ${text(hard)} in ${graph}`, `${EX}s2 ${EX}p ${EX}größe in ${graph}`],
  await stored(target))
await client.store.put(Readable.from([quad(3, hard)]), { graph: target })
same('put replaces', 1, (await stored(target)).length)
await client.store.post(Readable.from([quad(4, factory.blankNode())]), { graph: target })
same('post adds', 2, (await stored(target)).length)
await client.query.update(`DROP GRAPH <${graph}>`)
const missing = await fails('get of a graph that is not there', () => client.store.get(target).toArray())
same('its status', 404, missing.status)
await client.store.put(Readable.from(before))
same('put of the default graph', before.length, (await stored()).length)

// As many rows as are not held in a buffer, there and back.
const n = node('n')
async function * numbers () {
  for (let i = 0; i < MANY; i++) {
    const value = factory.literal(String(i), factory.namedNode('http://www.w3.org/2001/XMLSchema#integer'))
    yield factory.quad(node(`many/${i}`), n, value)
  }
}
await client.store.put(Readable.from(numbers()), { graph: node('many') })
const all = `SELECT * { GRAPH <${EX}many> { ?s ?p ?o } }`
let [rows, sum] = [0, 0]
for await (const row of client.query.select(all)) {
  rows++
  sum += Number(row.o.value)
}
same('rows and their sum', [MANY, MANY * (MANY - 1) / 2], [rows, sum])
let triples = 0
for await (const each of client.store.get(node('many'))) triples += each.predicate.equals(n)
same('triples of a large graph', MANY, triples)
// A client that goes away early does no harm.
for await (const row of client.query.select(all)) {
  same('a first row', 'Literal', row.o.termType)
  break
}
same('a query after one that was given up', true, await client.query.ask('ASK {}'))
await client.query.update(`DROP GRAPH <${EX}many>`)
passed()
