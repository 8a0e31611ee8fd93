import unittest

from shelf.report import top
from shelf.stock import Item


class Report(unittest.TestCase):
    def test_the_highest_counts_come_first(self):
        items = [Item("tea", 5, 5), Item("mugs", 9, 3), Item("jars", 9, 1)]
        self.assertEqual(top(items, 2), ["jars", "mugs"])
