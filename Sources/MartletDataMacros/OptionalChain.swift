import SwiftSyntax

/// An expression like `a?.b.c`, split at its first question mark.
struct OptionalChain {
    /// The expression before the question mark.
    let wrapped: ExprSyntax
    private let whole: ExprSyntax
    private let mark: SyntaxIdentifier

    /// Nil if the expression has no optional chain on its way down to its root.
    init?(_ expression: ExprSyntax) {
        guard let first = Self.first(expression) else { return nil }
        wrapped = first.expression.trimmed
        whole = expression
        mark = first.id
    }

    private static func first(_ expression: ExprSyntax) -> OptionalChainingExprSyntax? {
        if let chain = expression.as(OptionalChainingExprSyntax.self) { return first(chain.expression) ?? chain }
        if let member = expression.as(MemberAccessExprSyntax.self) { return member.base.flatMap(first) }
        if let call = expression.as(FunctionCallExprSyntax.self) { return first(call.calledExpression) }
        return nil
    }

    /// The whole expression with a name in place of everything up to the question mark.
    func continuation(on name: String) -> ExprSyntax {
        let replacer = Replacer(mark: mark, name: name)
        return replacer.rewrite(whole).as(ExprSyntax.self) ?? whole
    }

    private final class Replacer: SyntaxRewriter {
        let mark: SyntaxIdentifier
        let name: String

        init(mark: SyntaxIdentifier, name: String) {
            self.mark = mark
            self.name = name
        }

        override func visit(_ node: OptionalChainingExprSyntax) -> ExprSyntax {
            guard node.id == mark else { return super.visit(node) }
            return ExprSyntax(DeclReferenceExprSyntax(baseName: .identifier(name)))
        }
    }
}
