"""A shop with users, friends, reviews and offers as N-Triples, after the data of the Waterloo SPARQL
Diversity Test Suite (Aluç, Hartig, Özsu, Daudjee 2014): its kinds of things and their numbers for
each unit of scale, properties that some have and some have not, and choices by Zipf's law.

    generate.py SCALE      about 100,000 triples for each unit of scale

Not its generator: names, texts and draws are ours, so the answers are not those of the suite.
"""

import bisect
import itertools
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ntriples import TYPE, integer, iri, text, triple, typed

BASE = "http://snowmelt.test/watdiv/"
# Things of a unit of scale, and those whose number does not grow.
GROWING = {"User": 1000, "Product": 250, "Review": 1500, "Offer": 900, "Retailer": 12, "Website": 50, "Purchase": 1500}
FIXED = {"Topic": 250, "Genre": 145, "City": 240, "Country": 25, "Language": 25, "Category": 15, "Role": 3, "AgeGroup": 9}


class Zipf:
    """Numbers below a bound, the first ones most often."""

    def __init__(self, draw, bound, exponent=0.8):
        self.draw, self.sums = draw, list(itertools.accumulate((i + 1) ** -exponent for i in range(bound)))

    def __call__(self):
        return bisect.bisect(self.sums, self.draw.random() * self.sums[-1])


class Shop:
    def __init__(self, scale):
        self.draw = random.Random(20261129)
        self.counts = {**{kind: n * scale for kind, n in GROWING.items()}, **FIXED}
        self.often = {kind: Zipf(self.draw, n) for kind, n in self.counts.items()}
        letters = "bcdfghjklmnprstvwz"
        self.words = ["".join(self.draw.choice(letters) + self.draw.choice("aeiou") for _ in range(self.draw.randint(2, 4)))
                      for _ in range(4000)]

    def node(self, kind, number):
        return iri("%s%s%d" % (BASE, kind, number))

    def some(self, kind):
        return self.node(kind, self.often[kind]())

    def any(self, kind):
        return self.node(kind, self.draw.randrange(self.counts[kind]))

    def each(self, kind):
        for number in range(self.counts[kind]):
            yield self.node(kind, number)

    def tell(self, subject, name, value):
        triple(subject, iri(BASE + "terms#" + name), value)

    def maybe(self, share, subject, name, make):
        if self.draw.random() < share:
            self.tell(subject, name, make())

    def several(self, least, most, subject, name, make):
        for value in sorted({make() for _ in range(self.draw.randint(least, most))}):
            self.tell(subject, name, value)

    def prose(self, least, most):
        return text(" ".join(self.draw.choices(self.words, k=self.draw.randint(least, most))))

    def date(self):
        return typed("20%02d-%02d-%02d" % (self.draw.randint(5, 25), self.draw.randint(1, 12), self.draw.randint(1, 28)), "date")

    def places(self):
        for city in self.each("City"):
            self.tell(city, "parentCountry", self.any("Country"))
        for site in self.each("Website"):
            self.tell(site, "url", text("http://www.%s%d.test/" % (self.draw.choice(self.words), self.draw.randrange(10**6))))
            self.tell(site, "hits", integer(self.draw.randrange(10**6)))
            self.maybe(0.5, site, "language", lambda: self.some("Language"))
        for genre in self.each("Genre"):
            self.several(1, 4, genre, "tag", lambda: self.some("Topic"))
            triple(genre, TYPE, iri(BASE + "terms#Genre"))

    def users(self):
        for user in self.each("User"):
            triple(user, TYPE, self.some("Role"))
            self.tell(user, "userId", integer(self.draw.randrange(10**7)))
            self.several(0, 90, user, "friendOf", lambda: self.any("User"))
            self.several(0, 60, user, "follows", lambda: self.some("User"))
            self.several(0, 4, user, "subscribes", lambda: self.some("Website"))
            self.several(0, 6, user, "likes", lambda: self.some("Product"))
            self.maybe(0.7, user, "givenName", lambda: self.prose(1, 1))
            self.maybe(0.7, user, "familyName", lambda: self.prose(1, 1))
            self.maybe(0.5, user, "age", lambda: self.some("AgeGroup"))
            self.maybe(0.6, user, "gender", lambda: text(self.draw.choice(["female", "male", "other"])))
            self.maybe(0.6, user, "nationality", lambda: self.some("Country"))
            self.maybe(0.4, user, "location", lambda: self.some("City"))
            self.maybe(0.05, user, "jobTitle", lambda: self.prose(1, 2))
            self.maybe(0.4, user, "birthDate", self.date)
            self.maybe(0.05, user, "homepage", lambda: self.any("Website"))

    def products(self):
        for product in self.each("Product"):
            triple(product, TYPE, self.some("Category"))
            self.several(1, 3, product, "hasGenre", lambda: self.some("Genre"))
            self.several(0, 4, product, "tag", lambda: self.some("Topic"))
            self.maybe(0.5, product, "caption", lambda: self.prose(3, 10))
            self.maybe(0.5, product, "description", lambda: self.prose(10, 60))
            self.maybe(0.3, product, "keywords", lambda: self.prose(2, 6))
            self.maybe(0.3, product, "text", lambda: self.prose(40, 120))
            self.maybe(0.4, product, "contentRating", lambda: integer(self.draw.choice([0, 6, 12, 16, 18])))
            self.maybe(0.3, product, "contentSize", lambda: integer(self.draw.randrange(1, 10**5)))
            self.maybe(0.2, product, "language", lambda: self.some("Language"))
            self.maybe(0.1, product, "publisher", lambda: self.prose(1, 3))
            for role, share in ("artist", 0.05), ("conductor", 0.03), ("actor", 0.1), ("author", 0.1), ("editor", 0.05):
                self.maybe(share, product, role, lambda: self.some("User"))
            self.maybe(0.1, product, "homepage", lambda: self.any("Website"))
            self.maybe(0.2, product, "datePublished", self.date)

    def reviews(self):
        for review in self.each("Review"):
            self.tell(self.some("Product"), "hasReview", review)
            self.tell(review, "reviewer", self.some("User"))
            self.tell(review, "rating", integer(self.draw.randint(1, 10)))
            self.maybe(0.3, review, "title", lambda: self.prose(2, 8))
            self.maybe(0.7, review, "text", lambda: self.prose(20, 80))
            self.maybe(0.2, review, "totalVotes", lambda: integer(self.draw.randrange(1000)))

    def trade(self):
        for retailer in self.each("Retailer"):
            self.tell(retailer, "legalName", self.prose(1, 3))
            self.maybe(0.5, retailer, "homepage", lambda: self.any("Website"))
            self.maybe(0.3, retailer, "openingHours", lambda: text("Mo-Fr 9:00-%d:00" % self.draw.randint(16, 22)))
        for offer in self.each("Offer"):
            self.tell(self.some("Retailer"), "offers", offer)
            self.tell(offer, "includes", self.some("Product"))
            self.tell(offer, "price", typed("%.2f" % self.draw.uniform(1, 2000), "decimal"))
            self.tell(offer, "serialNumber", integer(self.draw.randrange(10**8)))
            self.maybe(0.6, offer, "validFrom", self.date)
            self.maybe(0.6, offer, "validThrough", self.date)
            self.maybe(0.8, offer, "eligibleQuantity", lambda: integer(self.draw.randint(1, 10)))
            self.several(0, 10, offer, "eligibleRegion", lambda: self.any("Country"))
        for purchase in self.each("Purchase"):
            self.tell(self.some("User"), "makesPurchase", purchase)
            self.tell(purchase, "purchaseFor", self.some("Product"))
            self.tell(purchase, "purchaseDate", self.date())
            self.maybe(0.5, purchase, "price", lambda: typed("%.2f" % self.draw.uniform(1, 2000), "decimal"))


shop = Shop(int(sys.argv[1]))
for part in shop.places, shop.users, shop.products, shop.reviews, shop.trade:
    part()
