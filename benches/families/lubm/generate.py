"""Universities as N-Triples, with the numbers of the profile that the Lehigh University Benchmark
was published with (Guo, Pan, Heflin 2005, appendix): departments of a university, staff of a
department, students and courses of the staff, publications.

    generate.py UNIVERSITIES

Not its generator: names and the draws are ours, so the answers are not those of the benchmark. The
classes and their hierarchy are in the data, as queries here have no reasoner.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ntriples import SUBCLASS, TYPE, iri, text, triple

UB = "http://snowmelt.test/lubm#"
HIERARCHY = {
    "Employee": "Person", "Faculty": "Employee", "Professor": "Faculty", "FullProfessor": "Professor",
    "AssociateProfessor": "Professor", "AssistantProfessor": "Professor", "Chair": "Professor",
    "Lecturer": "Faculty", "Student": "Person", "UndergraduateStudent": "Student", "GraduateStudent": "Student",
    "TeachingAssistant": "GraduateStudent", "ResearchAssistant": "GraduateStudent", "GraduateCourse": "Course",
    "Course": "Work", "University": "Organization", "Department": "Organization", "ResearchGroup": "Organization",
}
# Kind, least and most of a department, least and most publications of each.
STAFF = [("FullProfessor", 7, 10, 15, 20), ("AssociateProfessor", 10, 14, 10, 18),
         ("AssistantProfessor", 8, 11, 5, 10), ("Lecturer", 5, 7, 0, 5)]


def term(name):
    return iri(UB + name)


class Department:
    def __init__(self, draw, university, number, universities):
        self.draw, self.universities = draw, universities
        self.base = "http://www.department%d.university%d.test/" % (number, university)
        self.iri = iri(self.base[:-1])
        triple(self.iri, TYPE, term("Department"))
        triple(self.iri, term("name"), text("Department%d" % number))
        triple(self.iri, term("subOrganizationOf"), university_iri(university))
        self.courses, self.graduate_courses = [], []

    def node(self, kind, number):
        return iri("%s%s%d" % (self.base, kind, number))

    def any_university(self):
        return university_iri(self.draw.randrange(self.universities))

    def person(self, kind, number):
        node = self.node(kind, number)
        triple(node, TYPE, term(kind))
        triple(node, term("name"), text("%s%d" % (kind, number)))
        triple(node, term("emailAddress"), text("%s%d@%s" % (kind, number, self.base[7:-1])))
        triple(node, term("telephone"), text("xxx-xxx-%04d" % self.draw.randrange(10000)))
        return node

    def course(self, kind, courses, teacher):
        node = self.node(kind, len(courses))
        courses.append(node)
        triple(node, TYPE, term(kind))
        triple(node, term("name"), text("%s%d" % (kind, len(courses) - 1)))
        triple(teacher, term("teacherOf"), node)

    def staff(self):
        """Makes the staff with its courses; returns it with its publications."""
        staff = []
        for kind, least, most, few, many in STAFF:
            for number in range(self.draw.randint(least, most)):
                node = self.person(kind, number)
                triple(node, term("worksFor"), self.iri)
                triple(node, term("researchInterest"), text("Research%d" % self.draw.randrange(30)))
                for degree in "undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom":
                    triple(node, term(degree), self.any_university())
                for _ in range(self.draw.randint(1, 2)):
                    self.course("Course", self.courses, node)
                if kind != "Lecturer":
                    for _ in range(self.draw.randint(1, 2)):
                        self.course("GraduateCourse", self.graduate_courses, node)
                works = [self.publication(node, i) for i in range(self.draw.randint(few, many))]
                staff.append((kind, node, works))
        head = self.draw.choice([node for kind, node, _ in staff if kind == "FullProfessor"])
        triple(head, term("headOf"), self.iri)
        triple(head, TYPE, term("Chair"))
        return staff

    def publication(self, author, number):
        node = author[:-1] + "/Publication%d>" % number
        triple(node, TYPE, term("Publication"))
        triple(node, term("name"), text("Publication%d" % number))
        triple(node, term("publicationAuthor"), author)
        return node

    def students(self, staff):
        professors = [(node, works) for kind, node, works in staff if kind != "Lecturer"]
        for number in range(sum(self.draw.randint(8, 14) for _ in staff)):
            node = self.student("UndergraduateStudent", number, self.courses, 2, 4)
            if self.draw.random() < 0.2:
                triple(node, term("advisor"), self.draw.choice(professors)[0])
        for number in range(sum(self.draw.randint(3, 4) for _ in staff)):
            node = self.student("GraduateStudent", number, self.graduate_courses, 1, 3)
            advisor, works = self.draw.choice(professors)
            triple(node, term("advisor"), advisor)
            triple(node, term("undergraduateDegreeFrom"), self.any_university())
            for work in self.draw.sample(works, min(len(works), self.draw.randint(0, 5))):
                triple(work, term("publicationAuthor"), node)
            part = self.draw.random()
            if part < 0.22:
                triple(node, TYPE, term("TeachingAssistant"))
                triple(node, term("teachingAssistantOf"), self.draw.choice(self.courses))
            elif part < 0.51:
                triple(node, TYPE, term("ResearchAssistant"))

    def student(self, kind, number, courses, least, most):
        node = self.person(kind, number)
        triple(node, term("memberOf"), self.iri)
        for course in self.draw.sample(courses, self.draw.randint(least, most)):
            triple(node, term("takesCourse"), course)
        return node

    def groups(self):
        for number in range(self.draw.randint(10, 20)):
            node = self.node("ResearchGroup", number)
            triple(node, TYPE, term("ResearchGroup"))
            triple(node, term("subOrganizationOf"), self.iri)


def university_iri(number):
    return iri("http://www.university%d.test" % number)


def main():
    universities = int(sys.argv[1])
    draw = random.Random(20261129)
    for lower, upper in HIERARCHY.items():
        triple(term(lower), SUBCLASS, term(upper))
    for university in range(universities):
        triple(university_iri(university), TYPE, term("University"))
        triple(university_iri(university), term("name"), text("University%d" % university))
        for number in range(draw.randint(15, 25)):
            department = Department(draw, university, number, universities)
            staff = department.staff()
            department.students(staff)
            department.groups()


main()
