import Foundation
import GRDB
import MartletStore
import MartletTestSupport

/// Writes at random to a node's tables, through Martlet or as another program. Statements that SQLite refuses are
/// skipped.
struct CompanyWriter {
    var random: SplitMix
    /// The statements that were written, for the analysis of a failure.
    private(set) var trace: [String] = []

    init(seed: UInt64) { random = SplitMix(seed: seed) }

    mutating func note(_ line: String) { trace.append(line) }

    mutating func write(_ node: TestNode) throws {
        let isForeign = random.once(in: 3)
        let keepsKeys = random.once(in: 2)
        var statements: [String] = []
        for _ in 0...random.below(4) { statements.append(try statement(node, enforced: !isForeign || keepsKeys)) }
        var sql = statements.joined(separator: ";\n")
        if try Company.isRenamed(node) { sql = sql.replacingOccurrences(of: "score", with: "points") }
        do {
            if isForeign {
                try node.foreignWrite(sql, foreignKeys: keepsKeys)
            } else {
                try node.write(sql, author: random.once(in: 2) ? "app" : nil)
            }
            trace.append("\(node.name) \(isForeign ? keepsKeys ? "foreign" : "foreign, keys off" : "own"): \(sql)")
        } catch let error as StoreError where (error.sqliteCode ?? 0) & 0xff == 19 {
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
        }
    }

    /// A statement that leaves no dangling reference, even if foreign keys are not enforced.
    private mutating func statement(_ node: TestNode, enforced: Bool) throws -> String {
        let number = random.below(1000)
        let code = "'p\(random.below(6))'"
        let tag = "'t\(random.below(6))'"
        let person = "(SELECT id FROM person ORDER BY (id * 7 + \(number)) % 11, id LIMIT 1)"
        let maybePerson = random.once(in: 3) ? "NULL" : person
        let project = "(SELECT id FROM project ORDER BY (id * 7 + \(number)) % 11, id LIMIT 1)"
        let someTag =
            random.once(in: 3)
            ? "NULL" : "(SELECT name FROM tag ORDER BY (unicode(substr(name, 2)) * 7 + \(number)) % 11 LIMIT 1)"
        let task = "(SELECT id FROM task ORDER BY (id * 7 + \(number)) % 11, id LIMIT 1)"
        let seat = "(SELECT id FROM seat ORDER BY (id * 7 + \(number)) % 11, id LIMIT 1)"
        let place = random.once(in: 5) ? "NULL" : "'place\(random.below(4))'"
        let email = random.once(in: 3) ? "NULL" : "'mail\(random.below(4))'"
        // REPLACE deletes rows that others refer to. Other programs leave `recursive_triggers` off.
        let replace = random.once(in: 2) ? "INSERT" : "INSERT OR REPLACE"
        switch random.below(enforced ? 36 : 28) {
        case 0...2: return "INSERT INTO person(name, score, boss) VALUES ('n\(number)', \(number).5, \(maybePerson))"
        case 3: return "UPDATE person SET name = 'm\(number)' WHERE id = \(person)"
        case 4: return "UPDATE person SET score = \(number), boss = \(maybePerson) WHERE id = \(person)"
        case 5: return "UPDATE person SET boss = id WHERE id = \(person)"
        case 6...7: return "INSERT INTO project(code, title, owner) VALUES (\(code), 'title\(number)', \(maybePerson))"
        case 8: return "UPDATE project SET title = 'title\(number)' WHERE id = \(project)"
        case 9: return "UPDATE project SET code = \(code) WHERE id = \(project)"
        case 10: return "UPDATE project SET owner = \(maybePerson), title = NULL WHERE code = \(code)"
        case 11: return "INSERT INTO tag(name, color, parent) VALUES (\(tag), 'c\(number)', \(someTag))"
        case 12: return "UPDATE tag SET color = 'c\(number)' WHERE name = \(tag)"
        case 13: return "UPDATE tag SET parent = \(someTag) WHERE name = \(tag)"
        case 14...15:
            return
                """
                INSERT INTO task(title, project, assignee, label)
                  VALUES ('x\(number)', \(project), \(maybePerson), \(someTag))
                """
        case 16: return "UPDATE task SET title = 'y\(number)', assignee = \(maybePerson) WHERE id = \(task)"
        case 17: return "UPDATE task SET project = \(project), label = \(someTag) WHERE id = \(task)"
        case 18: return "DELETE FROM task WHERE id = \(task)"
        case 19: return "\(replace) INTO membership(person, project, role) VALUES (\(person), \(project), 'r\(number)')"
        case 20: return "UPDATE membership SET role = 'r\(number)' WHERE person = \(person)"
        case 21: return "DELETE FROM membership WHERE project = \(project)"
        case 22: return "\(replace) INTO seat(place, email, person) VALUES (\(place), \(email), \(maybePerson))"
        case 23: return "UPDATE OR REPLACE seat SET place = \(place) WHERE id = \(seat)"
        case 24: return "UPDATE OR IGNORE seat SET email = \(email), person = \(maybePerson) WHERE id = \(seat)"
        case 25: return "DELETE FROM seat WHERE id = \(seat)"
        case 26:
            return "INSERT OR REPLACE INTO profile(id, bio) SELECT \(person), 'b\(number)' WHERE \(person) IS NOT NULL"
        case 27:
            if random.once(in: 3) { return "DELETE FROM setting WHERE key = 'k\(random.below(4))'" }
            let key = "k\(random.below(4))"
            let value = random.pick(["1", "1.0", "'1'", "x'00'", "NULL", "-0.0", "9007199254740993"])
            return "\(replace) INTO setting VALUES ('\(key)', \(value))"
        // The following statements affect other rows, which SQLite changes if foreign keys are enforced.
        case 28: return "DELETE FROM person WHERE id = \(person)"
        case 29: return "DELETE FROM project WHERE id = \(project)"
        case 30: return "DELETE FROM tag WHERE name = \(tag)"
        case 31: return "UPDATE OR IGNORE tag SET name = \(tag) WHERE name = 't\(random.below(6))'"
        case 32: return "UPDATE OR IGNORE project SET id = id + 10 WHERE id = \(project)"
        case 33: return "\(replace) INTO project(code, title) VALUES (\(code), 'again\(number)')"
        case 34: return "UPDATE OR IGNORE membership SET project = \(project) WHERE person = \(person)"
        default: return "UPDATE person SET name = NULL WHERE id = \(person); DELETE FROM person WHERE boss = \(person)"
        }
    }
}
