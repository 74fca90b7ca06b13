"""All Cypher of the Neo4j graph. Values are always parameters, and every pattern starts at a label of ours.

(:TrivetStore)                              the marker: this database is Trivet's; its format, version and counters
(:TrivetChunk)-[:PART_OF]->(:TrivetPage)
(:TrivetChunk)-[:MENTIONS {count}]->(:TrivetEntity)
(:TrivetPage)-[:LINKS_TO]->(:TrivetEntity)
(:TrivetPage)-[:IN_CATEGORY]->(:TrivetCategory)
(:TrivetEntity)-[:TITLE_OF]->(:TrivetPage)
(:TrivetAlias)-[:ALIAS_OF]->(:TrivetEntity)  a key under which an entity is met

Every node has `id`, unique in its label; where a name is too long for an index `id` is a hash and `full` the name.
`n` is a number for use on the wire. An entity that is not `known` only holds the place of one that pages link to,
or are about, and that has not come yet.
"""

from __future__ import annotations

LABELS = ("TrivetStore", "TrivetPage", "TrivetChunk", "TrivetEntity", "TrivetCategory", "TrivetAlias")
CONSTRAINTS = tuple(
    f"CREATE CONSTRAINT {label.lower()}_id IF NOT EXISTS FOR (node:{label}) REQUIRE node.id IS UNIQUE"
    for label in LABELS
)

# --- the database itself ------------------------------------------------------------------------------------------

MARKER = "OPTIONAL MATCH (s:TrivetStore {id: 'trivet'}) RETURN s.format, s.store, s.number, s.home"
FOREIGN = """
OPTIONAL MATCH (node)
WITH node LIMIT 1000
RETURN count(node), collect(DISTINCT labels(node)[0])[..5]"""
MARK = """
MERGE (s:TrivetStore {id: 'trivet'})
ON CREATE SET s.format = $format, s.store = $store, s.number = 0, s.next = 0
SET s.home = $home"""
BEGIN_WRITE = """
MATCH (s:TrivetStore {id: 'trivet'})
SET s.number = s.number + 1, s.next = s.next + $rows
RETURN s.next - $rows"""
# It locks the marker until the transaction ends: writers come one after the other, so they never deadlock.

# --- writing ------------------------------------------------------------------------------------------------------

PUT_PLACEHOLDERS = """
UNWIND $rows AS row
MERGE (e:TrivetEntity {id: row.id})
ON CREATE SET e.n = $first + row.n, e.full = row.full, e.name = '', e.keys = [], e.titled = false, e.known = false"""
PUT_PAGES = """
UNWIND $rows AS row
MERGE (p:TrivetPage {id: row.id})
ON CREATE SET p.n = $first + row.n, p.full = row.full"""
CLEAR_PAGES = """
UNWIND $ids AS id
MATCH (p:TrivetPage {id: id})-[old:LINKS_TO|IN_CATEGORY|TITLE_OF]-()
DELETE old"""
PUT_TITLES = """
UNWIND $rows AS row
MATCH (p:TrivetPage {id: row.page})
MATCH (e:TrivetEntity {id: row.entity})
CREATE (e)-[:TITLE_OF]->(p)"""
PUT_LINKS = """
UNWIND $rows AS row
MATCH (p:TrivetPage {id: row.page})
UNWIND row.entities AS entity
MATCH (e:TrivetEntity {id: entity})
CREATE (p)-[:LINKS_TO]->(e)"""
PUT_CATEGORIES = """
UNWIND $rows AS row
MATCH (p:TrivetPage {id: row.page})
MERGE (c:TrivetCategory {id: row.id})
ON CREATE SET c.full = row.full
CREATE (p)-[:IN_CATEGORY]->(c)"""
PUT_CHUNKS = """
UNWIND $rows AS row
MATCH (p:TrivetPage {id: row.page})
MERGE (c:TrivetChunk {id: row.id})
ON CREATE SET c.n = $first + row.n, c.full = row.full
WITH c, p
OPTIONAL MATCH (c)-[old:PART_OF]->(other:TrivetPage)
WHERE other <> p
DELETE old
MERGE (c)-[:PART_OF]->(p)"""
REMOVE_PAGES = """
UNWIND $ids AS id
MATCH (p:TrivetPage {id: id})
OPTIONAL MATCH (p)<-[:PART_OF]-(c:TrivetChunk)
WITH p, collect(c) AS chunks
FOREACH (chunk IN chunks | DETACH DELETE chunk)
DETACH DELETE p"""
REMOVE_CHUNKS = """
UNWIND $ids AS id
MATCH (c:TrivetChunk {id: id})
DETACH DELETE c"""

PUT_ENTITIES = """
UNWIND $rows AS row
MERGE (e:TrivetEntity {id: row.id})
ON CREATE SET e.n = $first + row.n, e.full = row.full
SET e.name = row.name, e.keys = row.keys, e.titled = row.titled, e.known = true"""
CLEAR_KEYS = """
UNWIND $ids AS id
MATCH (e:TrivetEntity {id: id})<-[old:ALIAS_OF]-(:TrivetAlias)
DELETE old"""
PUT_KEYS = """
UNWIND $rows AS row
MATCH (e:TrivetEntity {id: row.id})
UNWIND row.aliases AS alias
MERGE (a:TrivetAlias {id: alias})
CREATE (a)-[:ALIAS_OF]->(e)"""

MISSING_CHUNKS = """
UNWIND $ids AS id
OPTIONAL MATCH (c:TrivetChunk {id: id})
WITH id, c WHERE c IS NULL
RETURN id LIMIT 1"""
MISSING_ENTITIES = """
UNWIND $ids AS id
OPTIONAL MATCH (e:TrivetEntity {id: id})
WITH id, e WHERE e IS NULL OR NOT e.known
RETURN id LIMIT 1"""
CLEAR_MENTIONS = """
UNWIND $ids AS id
MATCH (c:TrivetChunk {id: id})-[old:MENTIONS]->(:TrivetEntity)
DELETE old"""
PUT_MENTIONS = """
UNWIND $rows AS row
MATCH (c:TrivetChunk {id: row.chunk})
UNWIND row.found AS found
MATCH (e:TrivetEntity {id: found[0]})
WHERE e.known
CREATE (c)-[:MENTIONS {count: found[1]}]->(e)"""

CLEAR_PART = tuple(
    f"MATCH (node:{label}) WITH node LIMIT 5000 DETACH DELETE node RETURN count(node)"
    for label in ("TrivetChunk", "TrivetPage", "TrivetAlias", "TrivetEntity", "TrivetCategory")
)
UNUSED = "NOT EXISTS { (e)<-[:MENTIONS]-() } AND NOT EXISTS { (e)-[:TITLE_OF]->() }"
FORGET_UNUSED = f"""
MATCH (e:TrivetEntity)
WHERE e.known AND {UNUSED}
SET e.known = false, e.titled = false, e.keys = []
RETURN count(e)"""
REMOVE_PLACEHOLDERS = f"""
MATCH (e:TrivetEntity)
WHERE NOT e.known AND NOT EXISTS {{ (e)<-[:LINKS_TO]-() }} AND {UNUSED}
DETACH DELETE e"""
REMOVE_KEYS_OF_UNKNOWN = """
MATCH (e:TrivetEntity)<-[old:ALIAS_OF]-(:TrivetAlias)
WHERE NOT e.known
DELETE old"""
REMOVE_LONE_ALIASES = """
MATCH (a:TrivetAlias)
WHERE NOT EXISTS { (a)-[:ALIAS_OF]->() }
DELETE a"""
REMOVE_LONE_CATEGORIES = """
MATCH (c:TrivetCategory)
WHERE NOT EXISTS { (c)<-[:IN_CATEGORY]-() }
DELETE c"""

# --- reading; what may be long comes as lists, since a row costs the driver as much as a hundred values in one ------

PART = 2000
"""How many numbers share a row. Not all of them are there, and a chunk has some twenty edges."""

ENTITY = "coalesce(e.full, e.id), e.name, e.keys, e.titled"
TITLED_ENTITIES = f"""
MATCH (e:TrivetEntity)
WHERE e.known AND e.titled
RETURN e.n / {PART} AS part, collect(coalesce(e.full, e.id)), collect(e.name), collect(e.keys), collect(e.titled)"""
FIND_ENTITIES = f"""
OPTIONAL MATCH (s:TrivetStore {{id: 'trivet'}})
CALL {{
  UNWIND $ids AS key
  MATCH (a:TrivetAlias {{id: key}})-[:ALIAS_OF]->(e:TrivetEntity)
  RETURN collect([key, {ENTITY}]) AS found
}}
RETURN s.format, s.store, s.number, s.home, found"""
# A question asks this first and then for a neighbourhood, which needs to know the version.
MENTIONS_OF = """
UNWIND $ids AS id
MATCH (c:TrivetChunk {id: id})
OPTIONAL MATCH (c)-[m:MENTIONS]->(e:TrivetEntity)
RETURN coalesce(c.full, c.id), coalesce(e.full, e.id), m.count"""
LINKING_PAGES = """
UNWIND $ids AS id
MATCH (e:TrivetEntity {id: id})<-[:LINKS_TO]-(p:TrivetPage)
RETURN DISTINCT coalesce(p.full, p.id)"""
PAGE_IDS = f"MATCH (p:TrivetPage) RETURN p.n / {PART} AS part, collect(coalesce(p.full, p.id))"
CHUNK_IDS = f"MATCH (c:TrivetChunk) RETURN c.n / {PART} AS part, collect(coalesce(c.full, c.id))"
COUNTS = """
RETURN COUNT { (:TrivetPage) }, COUNT { (:TrivetChunk) },
  COUNT { MATCH (e:TrivetEntity) WHERE e.known },
  COUNT { (:TrivetChunk)-[:MENTIONS]->(:TrivetEntity) },
  COUNT { MATCH (:TrivetPage)-[:LINKS_TO]->(e:TrivetEntity) WHERE e.known },
  COUNT { MATCH (c:TrivetCategory) WHERE EXISTS { (c)<-[:IN_CATEGORY]-() } }"""

# --- the whole graph, as numbers ----------------------------------------------------------------------------------

LOCK = "MATCH (s:TrivetStore {id: 'trivet'}) SET s.number = s.number"
ALL_ENTITIES = f"""
MATCH (e:TrivetEntity)
WHERE e.known
RETURN e.n / {PART} AS part, collect(e.n), collect(coalesce(e.full, e.id)), collect(e.name)"""
ALL_PAGES = f"""
MATCH (p:TrivetPage)
OPTIONAL MATCH (e:TrivetEntity)-[:TITLE_OF]->(p)
RETURN p.n / {PART} AS part, collect(p.n), collect(coalesce(e.n, -1))"""
ALL_CHUNKS = f"""
MATCH (c:TrivetChunk)-[:PART_OF]->(p:TrivetPage)
RETURN c.n / {PART} AS part, collect(c.n), collect(coalesce(c.full, c.id)), collect(p.n)"""
ALL_LINKS = f"""
MATCH (p:TrivetPage)-[:LINKS_TO]->(e:TrivetEntity)
RETURN p.n / {PART} AS part, collect(p.n), collect(e.n)"""
ALL_MENTIONS = f"""
MATCH (c:TrivetChunk)-[m:MENTIONS]->(e:TrivetEntity)
RETURN c.n / {PART} AS part, collect(c.n), collect(e.n), collect(m.count)"""
