# Families as SQL for an engine of tables, on numbers instead of terms: see duckdb_worker.py.
prefix a: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
prefix bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
prefix rev: <http://purl.org/stuff/rev#>
prefix dc: <http://purl.org/dc/elements/1.1/>
prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#>

## count-predicate
SELECT count(*) AS n FROM q(dc:date)

## count-object
SELECT count(*) AS n FROM q(a:type) WHERE o = bsbm:Offer

## all-subjects
SELECT count(DISTINCT s) AS n FROM quads

## all-objects
SELECT count(DISTINCT o) AS n FROM quads

## distinct-many-objects
SELECT count(DISTINCT o) AS n FROM q(rev:text)

## distinct-subjects
SELECT count(DISTINCT s) AS n FROM q(bsbm:productFeature)

## distinct-predicates-of-class
SELECT t.term AS p FROM (SELECT DISTINCT p FROM quads JOIN q(a:type) c USING (s) WHERE c.o = bsbm:Product) d
JOIN terms t ON t.id = d.p

## distinct-pairs
SELECT count(*) AS n FROM (SELECT DISTINCT v.o, d.o FROM q(bsbm:vendor) v JOIN q(bsbm:deliveryDays) d USING (s))

## distinct-after-join
SELECT count(DISTINCT m.o) AS n FROM q(bsbm:product) p JOIN q(bsbm:producer) m ON m.s = p.o

## group-by-predicate
SELECT t.term AS p, n FROM (SELECT p, count(*) AS n FROM quads GROUP BY p) g JOIN terms t ON t.id = g.p

## group-by-object-many
SELECT count(*) AS groups, max(n) AS most FROM (SELECT count(*) AS n FROM q(bsbm:product) GROUP BY o)

## group-by-subject
SELECT count(*) AS groups, max(n) AS most FROM (SELECT count(*) AS n FROM q(bsbm:productFeature) GROUP BY s)

## group-by-join-two-keys
SELECT x.term AS c, y.term AS e, n FROM (
  SELECT c.o AS c, e.o AS e, count(*) AS n
  FROM q(bsbm:vendor) v JOIN q(bsbm:product) p USING (s) JOIN q(bsbm:country) c ON c.s = v.o
  JOIN q(bsbm:producer) m ON m.s = p.o JOIN q(bsbm:country) e ON e.s = m.o GROUP BY c.o, e.o) g
JOIN terms x ON x.id = g.c JOIN terms y ON y.id = g.e

## group-by-count-distinct
SELECT t.term AS v, n FROM (
  SELECT v.o AS v, count(DISTINCT p.o) AS n FROM q(bsbm:vendor) v JOIN q(bsbm:product) p USING (s) GROUP BY v.o) g
JOIN terms t ON t.id = g.v

## group-by-two-levels
SELECT n, count(*) AS products FROM (SELECT count(*) AS n FROM q(bsbm:reviewFor) GROUP BY o) GROUP BY n

## join-large-large
SELECT count(*) AS n FROM q(dc:date) d JOIN q(dc:publisher) w USING (s)

## star-3
SELECT count(*) AS n FROM q(bsbm:product) p JOIN q(bsbm:vendor) v USING (s) JOIN q(bsbm:price) x USING (s)

## star-5
SELECT count(*) AS n FROM q(bsbm:product) p JOIN q(bsbm:vendor) v USING (s) JOIN q(bsbm:price) x USING (s)
JOIN q(bsbm:deliveryDays) d USING (s) JOIN q(bsbm:validTo) t USING (s)

## chain
SELECT count(*) AS n FROM q(bsbm:reviewFor) r JOIN q(bsbm:producer) m ON m.s = r.o JOIN q(bsbm:country) c ON c.s = m.o

## chain-features
SELECT count(*) AS n FROM q(bsbm:reviewFor) r JOIN q(bsbm:productFeature) f ON f.s = r.o JOIN q(rdfs:label) l ON l.s = f.o

## chain-long
SELECT count(*) AS n FROM q(bsbm:country) w JOIN q(rev:reviewer) r ON r.o = w.s JOIN q(bsbm:reviewFor) f ON f.s = r.s
JOIN q(bsbm:product) p ON p.o = f.o JOIN q(bsbm:vendor) v ON v.s = p.s JOIN q(bsbm:country) c ON c.s = v.o
WHERE w.o = %other_country% AND c.o = %country%

## join-many-many-features
SELECT count(*) AS n FROM q(bsbm:productFeature) x JOIN q(bsbm:productFeature) y USING (o)

## join-many-many-three
SELECT count(*) AS n FROM q(bsbm:reviewFor) r JOIN q(bsbm:product) p USING (o) JOIN q(bsbm:productFeature) f ON f.s = p.o

## join-many-many-distinct
SELECT count(DISTINCT c.o) AS n FROM q(rev:reviewer) w JOIN q(bsbm:reviewFor) f USING (s)
JOIN q(bsbm:product) p ON p.o = f.o JOIN q(bsbm:vendor) v ON v.s = p.s JOIN q(bsbm:country) c ON c.s = v.o

## join-many-many-sum
SELECT sum(t.value)::BIGINT AS n FROM q(bsbm:reviewFor) r JOIN q(bsbm:product) p USING (o)
JOIN q(bsbm:deliveryDays) d ON d.s = p.s JOIN terms t ON t.id = d.o

## join-cycle-4
SELECT count(*) AS n FROM q(rev:reviewer) w JOIN q(bsbm:reviewFor) p USING (s)
JOIN q(bsbm:reviewFor) q ON q.o = p.o JOIN q(rev:reviewer) x ON x.s = q.s AND x.o = w.o

## join-cycle-5
SELECT count(*) AS n FROM q(bsbm:reviewFor) p JOIN q(rev:reviewer) w USING (s) JOIN q(bsbm:country) c ON c.s = w.o
JOIN q(bsbm:producer) m ON m.s = p.o JOIN q(bsbm:country) e ON e.s = m.o AND e.o = c.o

## multicolumn-large
SELECT count(*) AS n FROM q(bsbm:vendor) v JOIN q(dc:publisher) w ON w.s = v.s AND w.o = v.o

## minus-large-large
SELECT count(*) AS n FROM q(dc:date) d ANTI JOIN q(bsbm:product) p USING (s)

## minus-star
SELECT count(*) AS n FROM q(bsbm:reviewFor) r
ANTI JOIN (SELECT x.s FROM q(bsbm:rating1) x JOIN q(bsbm:rating2) y USING (s)) z USING (s)

## exists-chain
SELECT count(*) AS n FROM q(rev:reviewer) w SEMI JOIN (
  SELECT r.s FROM q(bsbm:reviewFor) r JOIN q(bsbm:producer) m ON m.s = r.o JOIN q(bsbm:country) c ON c.s = m.o
  WHERE c.o = %country%) z USING (s)

## exists-filter
SELECT count(*) AS n FROM q(a:type) x SEMI JOIN (
  SELECT p.o AS s FROM q(bsbm:product) p JOIN q(bsbm:deliveryDays) d USING (s) JOIN terms t ON t.id = d.o
  WHERE t.value > 5) z USING (s) WHERE x.o = bsbm:Product

## optional-four
SELECT count(x.o) AS n, count(y.o) AS m, count(z.o) AS o, count(u.o) AS q FROM q(bsbm:reviewFor) r
LEFT JOIN q(bsbm:rating1) x USING (s) LEFT JOIN q(bsbm:rating2) y USING (s)
LEFT JOIN q(bsbm:rating3) z USING (s) LEFT JOIN q(bsbm:rating4) u USING (s)

## optional-chain-two
SELECT count(*) AS n, count(c.o) AS m FROM q(bsbm:reviewFor) r
LEFT JOIN (q(bsbm:producer) m JOIN q(bsbm:country) c ON c.s = m.o) ON m.s = r.o

## path-plus-all
WITH RECURSIVE t AS (
  SELECT s, o FROM q(rdfs:subClassOf) UNION SELECT t.s, n.o FROM t JOIN q(rdfs:subClassOf) n ON n.s = t.o)
SELECT count(*) AS n FROM t
