import unittest

from shelf.money import split, with_tax


class Money(unittest.TestCase):
    def test_half_a_cent_is_rounded_up(self):
        self.assertEqual(with_tax(50, 19), 60)

    def test_shares_add_up(self):
        self.assertEqual(split(100, 3), [34, 33, 33])
