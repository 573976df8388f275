import MartletDataMacros
import SwiftDiagnostics
import SwiftOperators
import SwiftParser
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros

/// The result of expanding the macros in a piece of source.
struct Expansion {
    struct Message: Equatable, CustomStringConvertible {
        /// The line in the original source, from 1.
        let line: Int
        let text: String
        var isError = true
        var description: String { "\(line): \(isError ? "error" : "warning"): \(text)" }
    }

    let messages: [Message]
    let source: String

    /// - Throws: the parser's error for source that isn't Swift.
    init(_ source: String) throws {
        let file = Parser.parse(source: source)
        let folded = try OperatorTable.standardOperators.foldAll(file).cast(SourceFileSyntax.self)
        let context = BasicMacroExpansionContext(
            sourceFiles: [folded: .init(moduleName: "Test", fullFilePath: "test.swift")])
        let specs = Self.macros.mapValues { type in
            MacroSpec(
                type: type,
                conformances: type == Self.macros["Model"] ? ["PersistentModel", "_ModelRoot", "Observable"] : [])
        }
        let expanded = folded.expand(macroSpecs: specs) { node in
            BasicMacroExpansionContext(sharingWith: context, lexicalContext: node.allMacroLexicalContexts())
        }
        self.source = expanded.description
        messages = context.diagnostics.compactMap { diagnostic in
            let place = context.location(
                for: diagnostic.position, anchoredAt: diagnostic.node, fileName: "test.swift")
            return Message(
                line: place.line, text: diagnostic.message, isError: diagnostic.diagMessage.severity == .error)
        }
    }

    /// The macros by the names that users write.
    private static let macros: [String: any Macro.Type] = {
        let types = MartletDataMacros.Plugin().providingMacros
        func type(_ name: String) -> (any Macro.Type)? { types.first { "\($0)" == name } }
        let names = [
            "Model": "ModelMacro", "Attribute": "MarkerMacro", "Relationship": "MarkerMacro",
            "Transient": "MarkerMacro",
            "Unique": "ConstraintMacro", "Index": "ConstraintMacro", "Predicate": "PredicateMacro",
            "Expression": "PredicateMacro", "ModelActor": "ModelActorMacro",
        ]
        return names.compactMapValues(type)
    }()
}
