import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `#Predicate` and `#Expression` over models and history: generates Foundation's expression tree, and adds the
/// expressions that Foundation has on Apple's systems only.
struct PredicateMacro: ExpressionMacro {
    static func expansion(
        of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
    ) throws -> ExprSyntax {
        let written = node.trailingClosure ?? node.arguments.first?.expression.as(ClosureExprSyntax.self)
        guard let closure = written else {
            context.report("#\(node.macroName.text) takes a closure literal.", at: node)
            return "Foundation.\(raw: node.macroName.text).true"
        }
        let generics = node.genericArgumentClause?.trimmedDescription ?? ""
        let writer = ExpressionWriter(context)
        let parameters = writer.parameters(of: closure)
        let body = writer.closureBody(closure, parameters: parameters)
        let list = parameters.joined(separator: ", ")
        return "Foundation.\(raw: node.macroName.text)\(raw: generics)({ \(raw: list) in \(raw: body) })"
    }
}

/// The signature of a closure in a predicate.
struct ClosureShape {
    let closure: ClosureExprSyntax

    init(_ closure: ClosureExprSyntax) {
        self.closure = closure
    }

    /// The names that the closure gives its parameters: nil for an unnamed one. The list is nil if the closure uses
    /// `$0`.
    private var writtenNames: [String?]? {
        let names: [String]
        switch closure.signature?.parameterClause {
        case .simpleInput(let list): names = list.map(\.name.text)
        case .parameterClause(let clause): names = clause.parameters.map { ($0.secondName ?? $0.firstName).text }
        case nil: return nil
        }
        return names.map { $0 == "_" ? nil : $0 }
    }

    /// The name of each parameter in the body.
    var namesInBody: [String?] {
        if let writtenNames { return writtenNames }
        let counter = ShorthandCounter(viewMode: .sourceAccurate)
        counter.walk(closure.statements)
        return (0..<max(counter.count, 1)).map { "$\($0)" }
    }

    /// Counts the shorthand parameters of a closure, excluding those of nested closures.
    private final class ShorthandCounter: SyntaxVisitor {
        var count = 0

        override func visit(_ node: ClosureExprSyntax) -> SyntaxVisitorContinueKind { .skipChildren }

        override func visit(_ token: TokenSyntax) -> SyntaxVisitorContinueKind {
            if case .dollarIdentifier(let name) = token.tokenKind, let index = Int(name.dropFirst()) {
                count = max(count, index + 1)
            }
            return .skipChildren
        }
    }
}
