// Comunica: the server as a source, named as an endpoint and found by its description, and as the
// destination of updates.
import { readFileSync } from 'node:fs'
import { QueryEngine } from '@comunica/query-sparql'
import { LITERALS, fails, passed, same, text } from './check.mjs'

const [server, data] = process.argv.slice(2)
const EX = 'http://example.org/'
const engine = new QueryEngine()

const put = await fetch(`${server}/graphs`, {
  method: 'PUT', headers: { 'content-type': 'application/trig' }, body: readFileSync(data)
})
same('the data is stored', 204, put.status)

const kinds = {
  'an endpoint': { type: 'sparql', value: `${server}/sparql` },
  'an endpoint for queries': { type: 'sparql', value: `${server}/query` },
  'found by its description': { value: `${server}/sparql` },
  'a bare address': `${server}/sparql`
}
for (const [kind, source] of Object.entries(kinds)) {
  const sources = [source]
  const rows = async (query, context = {}) =>
    (await engine.queryBindings(query, { sources, ...context })).toArray()
  const literals = await rows(`SELECT ?p ?o { <${EX}ann> ?p ?o FILTER isLiteral(?o) }`)
  same(`${kind}: terms`, LITERALS,
    literals.map(row => `${row.get('p').value} ${text(row.get('o'))}`).sort())
  const joined = await rows(`PREFIX ex: <${EX}> SELECT ?name ?friend {
    GRAPH ?g { ?s ex:knows ?ann ; ex:name ?name } ?ann ex:knows ?b ; ex:age 30 . ?b ex:name ?friend }`)
  same(`${kind}: a join`, [['Bob', 'no IRI']],
    joined.map(row => [row.get('name').value, row.get('friend').value]))
  const optional = await rows(`PREFIX ex: <${EX}> SELECT ?s ?age {
    ?s ex:knows ?o OPTIONAL { ?s ex:age ?age } } ORDER BY DESC(?age)`)
  same(`${kind}: OPTIONAL and ORDER BY`, ['30', undefined, undefined],
    optional.map(row => row.get('age')?.value))
  const counted = await rows('SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }')
  same(`${kind}: a count`, ['4'], counted.map(row => row.get('n').value))
  const path = await rows(`SELECT ?o { <${EX}ann> <${EX}knows>+ ?o }`)
  same(`${kind}: a path`, 2, path.length)
  const values = await rows(`SELECT ?s { VALUES ?n { "Cem"@tr "Bob" } GRAPH ?g { ?s <${EX}name> ?n } }`)
  same(`${kind}: VALUES`, [`${EX}bob`, `${EX}cem`], values.map(row => row.get('s').value).sort())
  same(`${kind}: ask`, true, await engine.queryBoolean(`ASK { ?s <${EX}age> 30 }`, { sources }))
  same(`${kind}: ask, no`, false, await engine.queryBoolean(`ASK { ?s <${EX}age> 31 }`, { sources }))
  const quads = await engine.queryQuads(
    'CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }', { sources })
  same(`${kind}: construct`, 4, (await quads.toArray()).length)
  const described = await engine.queryQuads(`DESCRIBE <${EX}Straße>`, { sources })
  same(`${kind}: describe`, [`${EX}größe/雪 ${EX}a?b=c&d=%20#e`],
    (await described.toArray()).map(quad => `${quad.predicate.value} ${quad.object.value}`))
}

// Two sources: Comunica itself joins, and sends what one pattern found into the other. There is no
// blank node among it: sent as _:b it would be a variable.
const both = await engine.queryBindings(
  `SELECT DISTINCT ?height { ?s <${EX}age> 30 ; <${EX}height> ?height }`,
  { sources: [kinds['an endpoint'], kinds['an endpoint for queries']] })
same('two sources', ['1.50', '1.75'], (await both.toArray()).map(row => row.get('height').value).sort())

for (const destination of [
  { type: 'sparql', value: `${server}/update` },
  { type: 'sparql', value: `${server}/sparql` },
  { value: `${server}/sparql` }
]) {
  const kind = JSON.stringify(destination)
  const update = query => engine.queryVoid(query, { sources: [kinds['an endpoint']], destination })
  const ask = query => engine.queryBoolean(query, { sources: [kinds['an endpoint']] })
  await update('INSERT DATA { <urn:a> <urn:b> "1\\n\\"2\\" 🎿"@en, 1.0 }')
  same(`${kind}: INSERT DATA`, true, await ask('ASK { <urn:a> <urn:b> "1\\n\\"2\\" 🎿"@en, 1.0 }'))
  await update('INSERT { ?s <urn:copy> ?o } WHERE { ?s <urn:b> ?o }')
  same(`${kind}: INSERT WHERE`, true, await ask('ASK { <urn:a> <urn:copy> 1.0 }'))
  await update('DELETE WHERE { <urn:a> ?p ?o }')
  same(`${kind}: DELETE WHERE`, false, await ask('ASK { <urn:a> ?p ?o }'))
}
const error = await fails('an endpoint that is not there', async () =>
  (await engine.queryBindings('SELECT * { ?s ?p ?o }', {
    sources: [{ type: 'sparql', value: `${server}/nowhere` }]
  })).toArray())
same('its status', true, /404/.test(error.message))
passed()
