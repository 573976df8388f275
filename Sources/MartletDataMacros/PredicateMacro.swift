import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `#Predicate` and `#Expression` over models and history: writes Foundation's expression tree, and adds what Foundation has on Apple's
/// systems only.
struct PredicateMacro: ExpressionMacro {
    static func expansion(
        of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
    ) throws -> ExprSyntax {
        let written = node.trailingClosure ?? node.arguments.first?.expression.as(ClosureExprSyntax.self)
        guard let closure = written else {
            context.report("#\(node.macroName.text) takes a closure, written in place.", at: node)
            return "Foundation.\(raw: node.macroName.text).true"
        }
        let generics = node.genericArgumentClause?.trimmedDescription ?? ""
        let writer = ExpressionWriter(context)
        let parameter = ClosureShape(closure).writtenName ?? writer.freshName()
        let body = writer.closureBody(closure, parameter: parameter)
        return "Foundation.\(raw: node.macroName.text)\(raw: generics)({ \(raw: parameter) in \(raw: body) })"
    }
}

/// What a closure in a predicate looks like.
struct ClosureShape {
    let closure: ClosureExprSyntax

    init(_ closure: ClosureExprSyntax) {
        self.closure = closure
    }

    /// The name that the closure gives its parameter. Nil where it says `$0`.
    var writtenName: String? {
        let name: String? =
            switch closure.signature?.parameterClause {
            case .simpleInput(let list): list.first?.name.text
            case .parameterClause(let clause): clause.parameters.first.map { ($0.secondName ?? $0.firstName).text }
            case nil: nil
            }
        return name == "_" ? nil : name
    }

    /// What the body calls the parameter.
    var nameInBody: String { writtenName ?? "$0" }
}
