import unittest

from shelf.stock import Item, to_order


class Stock(unittest.TestCase):
    def test_an_item_at_its_minimum_is_ordered(self):
        self.assertEqual(to_order([Item("tea", 5, 5), Item("mugs", 9, 3)]), {"tea": 5})
