"""A store for rdflib: `Graph(store="Snowmelt")`, or `Graph(store=SnowmeltStore(path))`.

Triples live in a Snowmelt database, in memory until `open` names a directory. Queries and updates
are run by Snowmelt where they mean there what they mean in rdflib, otherwise by rdflib itself on
the triples of the store. Graphs named by blank nodes, such as a `Graph` without identifier, are
the default graph of the database, so that a graph is found again when it is opened again.
"""

from __future__ import annotations

from typing import Any, Generator, Iterable, Iterator, Mapping, Optional, Tuple

from rdflib import BNode, Graph, Literal, URIRef, Variable
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID
from rdflib.query import Result
from rdflib.store import VALID_STORE, Store
from rdflib.term import Identifier, Node

import snowmelt as sm

_Triple = Tuple[Node, Node, Node]


def _to_snowmelt(term: Any) -> Any:
    if isinstance(term, URIRef):
        return sm.NamedNode(str(term))
    if isinstance(term, BNode):
        return sm.BlankNode(str(term))
    if isinstance(term, Literal):
        if term.language:
            return sm.Literal(str(term), language=term.language)
        if term.datatype:
            return sm.Literal(str(term), datatype=sm.NamedNode(str(term.datatype)))
        return sm.Literal(str(term))
    raise ValueError(f"{term!r} is no term that a graph can hold")


def _to_rdflib(term: Any) -> Any:
    if isinstance(term, sm.NamedNode):
        return URIRef(term.value)
    if isinstance(term, sm.BlankNode):
        return BNode(term.value)
    if isinstance(term, sm.Literal):
        if term.language:
            return Literal(term.value, lang=term.language)
        if term.datatype.value == "http://www.w3.org/2001/XMLSchema#string":
            return Literal(term.value)
        return Literal(term.value, datatype=URIRef(term.datatype.value), normalize=False)
    return None


class SnowmeltStore(Store):
    """Triples and graphs in a Snowmelt database."""

    context_aware = True
    formula_aware = False
    transaction_aware = False
    graph_aware = True

    def __init__(
        self,
        configuration: Optional[str] = None,
        identifier: Optional[Identifier] = None,
        *,
        store: Optional[sm.Store] = None,
    ):
        self._store: Optional[sm.Store] = store
        self._prefixes: dict[str, URIRef] = {}
        super().__init__(configuration, identifier)

    @property
    def _inner(self) -> sm.Store:
        if self._store is None:
            self._store = sm.Store()
        return self._store

    def open(self, configuration: Any, create: bool = False) -> Optional[int]:
        if self._store is not None:
            raise ValueError("the store is open already")
        self._store = sm.Store(configuration)
        return VALID_STORE

    def close(self, commit_pending_transaction: bool = False) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def gc(self) -> None:
        self._inner.optimize()

    def _graph_name(self, context: Any) -> Any:
        """The graph of a context: None means all of them."""
        identifier = context.identifier if isinstance(context, Graph) else context
        if identifier is None:
            return None
        if identifier == DATASET_DEFAULT_GRAPH_ID or isinstance(identifier, BNode):
            return sm.DefaultGraph()
        return sm.NamedNode(str(identifier))

    def _quad(self, triple: Any, context: Any) -> sm.Quad:
        subject, predicate, object = map(_to_snowmelt, triple)
        graph = self._graph_name(context)
        return sm.Quad(subject, predicate, object, graph or sm.DefaultGraph())

    def _matching(self, pattern: Any, context: Any) -> Iterator[sm.Quad]:
        subject, predicate, object = (None if t is None else _to_snowmelt(t) for t in pattern)
        if isinstance(subject, sm.Literal) or not isinstance(predicate, (sm.NamedNode, type(None))):
            return iter(())
        return self._inner.quads_for_pattern(subject, predicate, object, self._graph_name(context))

    def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
        if quoted:
            raise ValueError("Snowmelt does not hold formulas")
        self._inner.add(self._quad(triple, context))
        super().add(triple, context, quoted)

    def addN(self, quads: Iterable[Any]) -> None:
        quads = list(quads)
        self._inner.extend(self._quad((s, p, o), g) for s, p, o, g in quads)
        for s, p, o, g in quads:
            super().add((s, p, o), g)

    def remove(self, triple: Any, context: Any = None) -> None:
        self._inner.remove_all(list(self._matching(triple, context)))
        super().remove(triple, context)

    def triples(
        self, triple_pattern: Any, context: Any = None
    ) -> Iterator[Tuple[_Triple, Iterator[Any]]]:
        if context is not None:
            for quad in self._matching(triple_pattern, context):
                yield self._triple(quad), iter((context,))
            return
        # each triple once, with the graphs that have it
        found: dict[_Triple, list[Any]] = {}
        for quad in self._matching(triple_pattern, None):
            found.setdefault(self._triple(quad), []).append(self._context(quad.graph_name))
        for triple, contexts in found.items():
            yield triple, iter(contexts)

    def _triple(self, quad: sm.Quad) -> _Triple:
        return _to_rdflib(quad.subject), _to_rdflib(quad.predicate), _to_rdflib(quad.object)

    def _context(self, graph_name: Any) -> Graph:
        if isinstance(graph_name, sm.DefaultGraph):
            return Graph(store=self, identifier=DATASET_DEFAULT_GRAPH_ID)
        return Graph(store=self, identifier=_to_rdflib(graph_name))

    def __len__(self, context: Any = None) -> int:
        if context is None:
            return sum(1 for _ in self.triples((None, None, None)))
        return sum(1 for _ in self._matching((None, None, None), context))

    def contexts(self, triple: Optional[Any] = None) -> Generator[Graph, None, None]:
        if triple is None or triple == (None, None, None):
            for name in self._inner.named_graphs():
                yield self._context(name)
            return
        for graph_name in {quad.graph_name for quad in self._matching(triple, None)}:
            yield self._context(graph_name)

    def add_graph(self, graph: Graph) -> None:
        name = self._graph_name(graph)
        self._inner.add_graph(name)

    def remove_graph(self, graph: Graph) -> None:
        self._inner.remove_graph(self._graph_name(graph))

    def query(
        self,
        query: Any,
        initNs: Mapping[str, Any],
        initBindings: Mapping[str, Identifier],
        queryGraph: Any,
        **kwargs: Any,
    ) -> Result:
        if kwargs or not isinstance(query, str) or queryGraph == "__UNION__":
            raise NotImplementedError
        if any(isinstance(value, BNode) for value in initBindings.values()):
            raise NotImplementedError
        name = self._graph_name(queryGraph)
        options: dict[str, Any] = {}
        if isinstance(name, sm.NamedNode):
            options["default_graph"] = name
            options["named_graphs"] = list(self._inner.named_graphs())
        bindings = {str(Variable(n)): _to_snowmelt(v) for n, v in initBindings.items()}
        try:
            answer = self._inner.query(
                query,
                prefixes={prefix: str(iri) for prefix, iri in {**self._prefixes, **initNs}.items()},
                substitutions=bindings,
                **options,
            )
        except sm.ParameterError:
            # rdflib takes bindings of variables that the query does not have
            raise NotImplementedError from None
        if isinstance(answer, sm.QueryBoolean):
            result = Result("ASK")
            result.askAnswer = bool(answer)
        elif isinstance(answer, sm.QueryTriples):
            result = Result("CONSTRUCT")
            graph = Graph()
            for triple in answer:
                graph.add(tuple(map(_to_rdflib, triple)))
            result.graph = graph
        else:
            result = Result("SELECT")
            result.vars = [Variable(name) for name in answer.columns]
            variables = result.vars
            result.bindings = (
                {
                    variable: _to_rdflib(term)
                    for variable, term in zip(variables, solution)
                    if term is not None
                }
                for solution in answer
            )
        return result

    def update(
        self,
        update: Any,
        initNs: Mapping[str, Any],
        initBindings: Mapping[str, Identifier],
        queryGraph: Any,
        **kwargs: Any,
    ) -> None:
        # What an update means in a graph that is not the default one has no words in SPARQL.
        is_default = isinstance(self._graph_name(queryGraph), sm.DefaultGraph)
        if kwargs or initBindings or not isinstance(update, str) or not is_default:
            raise NotImplementedError
        prefixes = {prefix: str(iri) for prefix, iri in {**self._prefixes, **initNs}.items()}
        self._inner.update(update, prefixes=prefixes)

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:
        if override or (prefix not in self._prefixes and self.prefix(namespace) is None):
            known = self.prefix(namespace)
            if known is not None:
                del self._prefixes[known]
            self._prefixes[prefix] = URIRef(namespace)

    def prefix(self, namespace: URIRef) -> Optional[str]:
        for prefix, iri in self._prefixes.items():
            if str(iri) == str(namespace):
                return prefix
        return None

    def namespace(self, prefix: str) -> Optional[URIRef]:
        return self._prefixes.get(prefix)

    def namespaces(self) -> Iterator[Tuple[str, URIRef]]:
        yield from list(self._prefixes.items())
