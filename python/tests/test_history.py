"""Values from JSON, without a store."""

import math
import unittest
import uuid

from martlet import RawText, Reference, _history

DOCUMENT = {
    "transaction": 7, "token": "A:7", "author": None, "context": None, "process": None, "traceID": None,
    "timestamp": "2026-11-22T10:35:17.825Z",
    "origin": {
        "node": "F7B2A3C8-6F7D-4C0B-9C28-0E6C1C0B4E57", "name": "stall", "sequence": 3, "author": "till",
        "timestamp": "2026-11-22T10:35:17Z"},
    "changes": [{
        "change": 6, "entity": "item", "kind": "insert", "row": None, "identity": ["tea", {"blob": "AQI="}],
        "oldValues": None, "tombstone": None, "timestamp": "2026-11-22T10:35:17.825Z",
        "values": {
            "text": "tea", "integer": 2 ** 62, "null": None, "real": 1.5, "blob": {"blob": "AAE="}, "raw": {"rawText": "/w=="},
            "infinite": {"real": "-inf"}, "undefined": {"real": "nan"},
            "target": {"reference": "shelf", "identity": "F7B2A3C8-6F7D-4C0B-9C28-0E6C1C0B4E57"}}}],
}


class HistoryTests(unittest.TestCase):
    def test_values_have_the_types_of_sqlite3(self):
        values = dict(_history.transaction(DOCUMENT).changes[0].values)
        self.assertTrue(math.isnan(values.pop("undefined")))
        self.assertIsInstance(values["raw"], RawText)
        self.assertEqual(values, {
            "text": "tea", "integer": 2 ** 62, "null": None, "real": 1.5, "blob": b"\x00\x01", "raw": b"\xff",
            "infinite": -math.inf,
            "target": Reference("shelf", uuid.UUID("F7B2A3C8-6F7D-4C0B-9C28-0E6C1C0B4E57"))})

    def test_identities_are_values_or_a_uuid(self):
        self.assertEqual(_history.transaction(DOCUMENT).changes[0].identity, ("tea", b"\x01\x02"))

    def test_the_origin_names_the_node(self):
        transaction = _history.transaction(DOCUMENT)
        self.assertEqual((transaction.origin.name, transaction.origin.sequence), ("stall", 3))
        self.assertEqual(transaction.timestamp.microsecond, 825_000)
        self.assertIsNone(_history.transaction({**DOCUMENT, "origin": None}).origin)
        self.assertEqual(transaction.changes[0].old_values, {})

    def test_a_time_that_python_can_t_express_stops_no_reader(self):
        for text, year in [("10889-08-02T05:31:50.656Z", 9999), ("-4712-01-01T12:00:00.000Z", 1)]:
            time = _history.transaction({**DOCUMENT, "timestamp": text}).timestamp
            self.assertEqual(time.year, year)
            self.assertIsNotNone(time.tzinfo)


if __name__ == "__main__":
    unittest.main()
