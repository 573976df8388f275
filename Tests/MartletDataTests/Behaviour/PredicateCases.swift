import Foundation
import SwiftData
import Testing

/// Predicates that SQL and Foundation must agree on.
struct PredicateCase: Sendable, CustomTestStringConvertible {
    let name: String
    let predicate: Predicate<Sample>
    var testDescription: String { name }

    static let all: [PredicateCase] = {
        var cases: [PredicateCase] = []
        func add(_ name: String, _ predicate: Predicate<Sample>) {
            cases.append(PredicateCase(name: name, predicate: predicate))
        }
        addNumbers(add)
        addOptionals(add)
        addTexts(add)
        addLists(add)
        addRelationships(add)
        addCollections(add)
        return cases
    }()

    private static func addNumbers(_ add: (String, Predicate<Sample>) -> Void) {
        let limit = 3
        add("equal", #Predicate { $0.number == 3 })
        add("not equal", #Predicate { $0.number != limit })
        add("order", #Predicate { $0.number < 2 || $0.number >= 5 })
        add("arithmetic", #Predicate { $0.number * 2 - 3 > limit })
        add("remainder of negatives", #Predicate { $0.number % 3 == -1 })
        add("division of negatives", #Predicate { $0.number / 2 == -1 })
        add("negative", #Predicate { -$0.number > 2 })
        add("unsigned order", #Predicate { $0.big > 9 })
        add("unsigned limit", #Predicate { $0.big <= 9_223_372_036_854_775_808 })
        add("unsigned range", #Predicate { (10...UInt64.max).contains($0.big) })
        add("unsigned equality", #Predicate { $0.big == 18_446_744_073_709_551_615 })
        add("real order", #Predicate { $0.ratio < 0.5 })
        add("real division", #Predicate { $0.ratio / 2 >= 0.25 })
        add("range", #Predicate { (1..<4).contains($0.number) })
        add("closed range", #Predicate { (1...4).contains($0.number) })
        add("dates", #Predicate { $0.date < Date(timeIntervalSince1970: 0) })
        add("conditional", #Predicate { $0.number > 2 ? $0.flag : !$0.flag })
        add("flag", #Predicate { $0.flag })
        add("not flag", #Predicate { !$0.flag })
        add("flag is false", #Predicate { $0.flag == false })
        add("comparison is false", #Predicate { ($0.number > 2) == false })
        add("flag equals comparison", #Predicate { $0.flag == ($0.number > 2) })
        add("flag differs from comparison", #Predicate { $0.flag != ($0.number > 2) })
        add("enum", #Predicate { $0.colour == .green })
        add("always", #Predicate { _ in true })
        add("never", #Predicate { _ in false })
    }

    private static func addOptionals(_ add: (String, Predicate<Sample>) -> Void) {
        let something: String? = "b"
        let nothing: String? = nil
        let most: Int? = 3
        let noMost: Int? = nil
        add("nil", #Predicate { $0.note == nil })
        add("not nil", #Predicate { $0.note != nil })
        add("not (nil)", #Predicate { !($0.note == nil) })
        add("optional equals", #Predicate { $0.note == "b" })
        add("optional differs", #Predicate { $0.note != "b" })
        add("not (optional equals)", #Predicate { !($0.note == "b") })
        add("not (optional differs)", #Predicate { !($0.note != "b") })
        add("equals a captured optional", #Predicate { $0.note == something })
        add("equals a captured nil", #Predicate { $0.note == nothing })
        add("differs from a captured nil", #Predicate { $0.note != nothing })
        add("two optionals equal", #Predicate { $0.note == $0.owner?.nick })
        add("two optionals differ", #Predicate { $0.note != $0.owner?.nick })
        add("optional flag true", #Predicate { $0.maybeFlag == true })
        add("optional flag not true", #Predicate { $0.maybeFlag != true })
        add("optional flag or false", #Predicate { $0.maybeFlag ?? false })
        add("not (optional flag or true)", #Predicate { !($0.maybeFlag ?? true) })
        add("optional number", #Predicate { ($0.count ?? -1) > 2 })
        add("optional enum", #Predicate { $0.otherColour == .green })
        add("optional enum differs", #Predicate { $0.otherColour != .green })
        add("optional enum nil", #Predicate { $0.otherColour == nil })
        add("chained", #Predicate { $0.note?.isEmpty == false })
        add("chained differs", #Predicate { $0.note?.isEmpty != true })
        add("chained or", #Predicate { $0.note?.contains("b") ?? true })
        add("if let", #Predicate { if let note = $0.note { note == "b" } else { $0.number > 2 } })
        add("if let, and then a constant", #Predicate { if let _ = $0.note { true } else { false } })
        add("if let, and then another attribute", #Predicate { if let _ = $0.note { $0.flag } else { false } })
        add("if let of the captured", #Predicate { if let most { $0.number < most } else { $0.flag } })
        add(
            "if let of the captured nil",
            #Predicate { if let noMost { $0.number < noMost || $0.number > 0 } else { $0.flag } })
        add("and of optionals", #Predicate { $0.note != "a" && $0.count != 3 })
        add("not and", #Predicate { !($0.note == "a" && $0.count == 3) })
        add("not or", #Predicate { !($0.note == "a" || $0.count == 3) })
        add("(optional equals) is false", #Predicate { ($0.note == "b") == false })
    }

    private static func addTexts(_ add: (String, Predicate<Sample>) -> Void) {
        add("text order", #Predicate { $0.text < "b" })
        add("text contains", #Predicate { $0.text.contains("b") })
        add("text contains nothing", #Predicate { $0.text.contains("") })
        add("text contains NUL", #Predicate { $0.text.contains("\u{0}b") })
        add("text starts", #Predicate { $0.text.starts(with: "ab") })
        add("text starts with nothing", #Predicate { $0.text.starts(with: "") })
        add("text starts with NUL", #Predicate { $0.text.starts(with: "a\u{0}") })
        add("text starts with an emoji", #Predicate { $0.text.starts(with: "👩‍👩‍👧") })
        add("text is empty", #Predicate { $0.text.isEmpty })
        add("text length", #Predicate { $0.text.count == 1 })
        add("text of two", #Predicate { $0.text.count == 2 })
        add("text of three or more", #Predicate { $0.text.count >= 3 })
        add("text with NUL", #Predicate { $0.text == "a\u{0}b" })
        add("localized", #Predicate { $0.text.localizedStandardContains("É") })
        add("localized emoji", #Predicate { $0.text.localizedStandardContains("👩‍👩‍👧") })
        add("pattern characters are characters", #Predicate { $0.text.contains("%") || $0.text.contains("_") })
        add("without case", #Predicate { $0.text.caseInsensitiveCompare("AB") == .orderedSame })
    }

    private static func addLists(_ add: (String, Predicate<Sample>) -> Void) {
        let numbers = [1, 3, 5]
        let none: [Int] = []
        let notes: [String?] = ["a", nil]
        let texts: [String?] = ["a", "b"]
        let noNotes: [String?] = []
        let many = Array(3..<2_500)
        let colours: [Colour] = [.green]
        let set: Set<String> = ["a", "ab"]
        add("list", #Predicate { numbers.contains($0.number) })
        add("not in list", #Predicate { !numbers.contains($0.number) })
        add("empty list", #Predicate { none.contains($0.number) })
        add("not in empty list", #Predicate { !none.contains($0.number) })
        add("long list", #Predicate { many.contains($0.number) })
        add("not in long list", #Predicate { !many.contains($0.number) })
        add("list with nil", #Predicate { notes.contains($0.note) })
        add("not in list with nil", #Predicate { !notes.contains($0.note) })
        add("optional in list", #Predicate { texts.contains($0.note) })
        add("(optional in list) is false", #Predicate { texts.contains($0.note) == false })
        add("optional not in list", #Predicate { !texts.contains($0.note) })
        add("optional in empty list", #Predicate { noNotes.contains($0.note) })
        add(
            "optional in list, in an if let",
            #Predicate { if let o = $0.owner { texts.contains(o.nick) } else { true } })
        add("enums", #Predicate { colours.contains($0.colour) })
        add("set", #Predicate { set.contains($0.text) })
        add("condition on the captured", #Predicate { s in numbers.contains { $0 > s.number } })
        add("condition on nothing captured", #Predicate { s in none.contains { $0 > s.number } })
        add("all of the captured", #Predicate { s in numbers.allSatisfy { $0 != s.number } })
        add("all of nothing captured", #Predicate { s in none.allSatisfy { $0 == s.number } })
    }

    private static func addRelationships(_ add: (String, Predicate<Sample>) -> Void) {
        add("owner nil", #Predicate { $0.owner == nil })
        add("owner not nil", #Predicate { $0.owner != nil })
        add("through owner", #Predicate { $0.owner?.name == "a" })
        add("through owner differs", #Predicate { $0.owner?.name != "a" })
        add("not through owner", #Predicate { !($0.owner?.name == "a") })
        add("through owner to optional", #Predicate { $0.owner?.nick == nil })
        add("through two", #Predicate { $0.owner?.boss?.name == "a" })
        add("through two differs", #Predicate { $0.owner?.boss?.name != "a" })
        add("owner's boss nil", #Predicate { $0.owner?.boss == nil })
        add("rank or", #Predicate { ($0.owner?.rank ?? 0) > 1 })
        add("rank of boss or rank", #Predicate { ($0.owner?.boss?.rank ?? $0.owner?.rank ?? -1) >= 1 })
        add("if let owner", #Predicate { if let owner = $0.owner { owner.rank > 1 } else { $0.number > 3 } })
        add("if let owner, and then another attribute", #Predicate { if let _ = $0.owner { $0.flag } else { false } })
        add("compared with owner", #Predicate { if let owner = $0.owner { $0.number > owner.rank } else { false } })
        let high = #Predicate<Owner> { $0.rank > 1 }
        add("nested", #Predicate { if let owner = $0.owner { high.evaluate(owner) } else { false } })
        add("not nested", #Predicate { if let owner = $0.owner { !high.evaluate(owner) } else { true } })
    }

    private static func addCollections(_ add: (String, Predicate<Sample>) -> Void) {
        add("tags empty", #Predicate { $0.tags.isEmpty })
        add("tags count", #Predicate { $0.tags.count == 2 })
        add("some tag", #Predicate { $0.tags.contains { $0.name == "x" } })
        add("no tag", #Predicate { !$0.tags.contains { $0.name == "x" } })
        add("(some tag) is false", #Predicate { $0.tags.contains { $0.name == "x" } == false })
        add("all tags", #Predicate { $0.tags.allSatisfy { $0.name != "x" } })
        add("not all tags", #Predicate { !$0.tags.allSatisfy { $0.name != "x" } })
        add("filtered tags", #Predicate { $0.tags.filter { $0.name > "x" }.count == 1 })
        add("filtered twice", #Predicate { $0.tags.filter { $0.name > "x" }.filter { $0.name < "z" }.isEmpty })
        add("owner's samples", #Predicate { $0.owner?.samples.contains { $0.flag } ?? false })
        add("owner's samples count", #Predicate { ($0.owner?.samples.count ?? 0) > 1 })
        add("owner's samples count differs", #Predicate { $0.owner?.samples.count != 1 })
        add(
            "quantifier in a quantifier",
            #Predicate { s in s.tags.contains { $0.samples.contains { $0.number > s.number } } })
        add(
            "all in some",
            #Predicate { $0.tags.contains { $0.samples.allSatisfy { $0.note != "b" } } })
        add("some of none in all", #Predicate { $0.tags.allSatisfy { $0.samples.contains { $0.flag } } })
        add(
            "element's own owner",
            #Predicate { s in s.tags.contains { $0.samples.contains { $0.owner?.name == s.note } } })
        add(
            "optional in a quantifier",
            #Predicate { $0.tags.contains { $0.samples.contains { $0.owner?.nick == nil } } })
        add("reports", #Predicate { $0.owner?.reports.contains { $0.rank > 1 } ?? false })
        add("all reports", #Predicate { $0.owner?.reports.allSatisfy { $0.nick != "a" } ?? false })
        add("all reports or nothing", #Predicate { $0.owner?.reports.allSatisfy { $0.nick != "a" } == true })
    }
}
