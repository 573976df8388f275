import Foundation
import MartletTestSupport

/// A parser for the part of the text format that the tests need.
struct Exposition {
    struct Sample {
        var name: String
        var labels: [String: String]
        var value: Double
    }

    var kinds: [String: String] = [:]
    var samples: [Sample] = []

    init(_ text: String) throws {
        for line in text.split(separator: "\n") {
            if line.hasPrefix("# TYPE ") {
                let words = line.split(separator: " ")
                kinds[String(words[2])] = String(words[3])
            } else if !line.hasPrefix("#") {
                samples.append(try Self.sample(line))
            }
        }
    }

    private static func sample(_ line: Substring) throws -> Sample {
        guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
            throw TestFailure("no sample: \(line)")
        }
        var rest = line[..<space]
        let name = rest.prefix { $0 != "{" }
        rest = rest.dropFirst(name.count)
        var labels: [String: String] = [:]
        while rest.first == "{" || rest.first == "," {
            rest = rest.dropFirst()
            let label = rest.prefix { $0 != "=" }
            rest = rest.dropFirst(label.count + 2)
            var text = String.UnicodeScalarView()
            var scalars = rest.unicodeScalars
            while let scalar = scalars.popFirst(), scalar != "\"" {
                guard scalar == "\\" else { text.append(scalar); continue }
                let next = scalars.popFirst()
                text.append(next == "n" ? "\n" : next ?? "?")
            }
            rest = Substring(scalars)
            labels[String(label)] = String(text)
        }
        return Sample(name: String(name), labels: labels, value: value)
    }

    func values(_ name: String, _ labels: [String: String] = [:]) -> [Double] {
        samples.filter { $0.name == name && $0.labels.merging(labels) { $1 } == $0.labels }.map(\.value)
    }

    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? { values(name, labels).first }
}
