// Assertions that name the case, and the two values that differ.
import { isDeepStrictEqual, inspect } from 'node:util'

let count = 0

export function same (what, expected, got) {
  count++
  if (!isDeepStrictEqual(expected, got)) {
    const show = value => inspect(value, { depth: null, breakLength: 100 })
    throw new Error(`${what}\n  expected: ${show(expected)}\n  got:      ${show(got)}`)
  }
}

// The error of a request that must fail.
export async function fails (what, request) {
  try {
    await request()
  } catch (error) {
    count++
    return error
  }
  throw new Error(`${what}\n  expected: an error\n  got:      success`)
}

export function passed () {
  console.log(`${count} checks`)
}

const XSD = 'http://www.w3.org/2001/XMLSchema#'

// The literals of ex:ann in ../data.trig. Tags of languages have no case: they come in lower case.
export const LITERALS = [
  ['name', 'Ann'], ['name', 'Anne', '@fr'], ['name', 'Анна', '@ru'], ['name', '安', '@zh-hans'],
  ['name', 'color', '@en-us'],
  ['quote', 'she said "hi" & left <here>,\n\tthen \'bye\'\\\r\nend'],
  ['emoji', '🎿❄️👩‍👩‍👧 é e\u0301'], ['empty', ''], ['spaces', '  two  '],
  ['age', '30', XSD + 'integer'], ['id', '0042', XSD + 'integer'], ['bad', 'thirty', XSD + 'integer'],
  ['height', '1.75', XSD + 'decimal'], ['height', '1.50', XSD + 'decimal'],
  ['mass', '6.5E1', XSD + 'double'], ['limit', 'INF', XSD + 'double'],
  ['here', 'true', XSD + 'boolean'], ['born', '1990-02-28', XSD + 'date'],
  ['seen', '2024-02-29T12:00:00.000+01:00', XSD + 'dateTime'], ['code', 'x-1', 'http://example.org/code']
].map(([predicate, value, kind = XSD + 'string']) => `http://example.org/${predicate} ${write(value, kind)}`).sort()

// A term of RDF/JS as text, that two terms share only if they are equal.
export function text (term) {
  if (term.termType !== 'Literal') return term.value
  return write(term.value, term.language ? `@${term.language.toLowerCase()}` : term.datatype.value)
}

function write (value, kind) {
  return `${JSON.stringify(value)} ${kind}`
}
