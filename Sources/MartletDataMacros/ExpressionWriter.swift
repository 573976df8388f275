import SwiftSyntax
import SwiftSyntaxMacros

/// Generates the expression tree of a predicate's body.
///
/// An expression that doesn't mention a parameter is a captured value, computed once when the predicate is created.
final class ExpressionWriter {
    private let context: any MacroExpansionContext
    /// The names of parameters in the expansion, by their names in the body.
    private var parameters: [String: String] = [:]
    static let foundation = "Foundation.PredicateExpressions"
    static let own = "MartletData.ModelExpressions"

    private var nameCount = 0

    init(_ context: any MacroExpansionContext) {
        self.context = context
    }

    /// A name for something that the user's code leaves unnamed. The macro system's own names start with a dollar sign,
    /// which closures take for property wrappers.
    func freshName() -> String {
        nameCount += 1
        return "__input\(nameCount)"
    }

    /// The names of a closure's parameters in the expansion.
    func parameters(of closure: ClosureExprSyntax) -> [String] {
        ClosureShape(closure).namesInBody.map { name in
            guard let name, !name.hasPrefix("$") else { return freshName() }
            return name
        }
    }

    /// The body of a closure, with the given names for its parameters.
    func closureBody(_ closure: ClosureExprSyntax, parameters names: [String]) -> String {
        let outer = parameters
        defer { parameters = outer }
        for (nameInBody, name) in zip(ClosureShape(closure).namesInBody, names) {
            if let nameInBody { parameters[nameInBody] = name }
        }
        return block(closure.statements, at: closure)
    }

    private func block(_ statements: CodeBlockItemListSyntax, at node: some SyntaxProtocol) -> String {
        guard statements.count == 1, let item = statements.first?.item else {
            return unsupported("A predicate is one expression: compute the rest before it.", node)
        }
        switch item {
        case .expr(let expression): return write(expression)
        case .stmt(let statement):
            if let result = statement.as(ReturnStmtSyntax.self)?.expression { return write(result) }
            if let expression = statement.as(ExpressionStmtSyntax.self)?.expression { return write(expression) }
        case .decl: break
        }
        return unsupported("A predicate is one expression: compute the rest before it.", node)
    }

    private func unsupported(_ message: String, _ node: some SyntaxProtocol) -> String {
        context.report(message, at: node)
        return "\(Self.foundation).build_Arg(true)"
    }

    private func mentionsParameter(_ node: some SyntaxProtocol) -> Bool {
        node.tokens(viewMode: .sourceAccurate).contains { token in
            switch token.tokenKind {
            case .identifier(let name), .dollarIdentifier(let name):
                parameters[name] != nil && token.parent?.is(DeclReferenceExprSyntax.self) == true
                    && token.parent?.parent?.as(MemberAccessExprSyntax.self)?.declName.id != token.parent?.id
            default: false
            }
        }
    }

    // MARK: Expressions

    func write(_ expression: ExprSyntax) -> String {
        if expression.is(NilLiteralExprSyntax.self) { return "\(Self.foundation).build_NilLiteral()" }
        guard mentionsParameter(expression) else { return "\(Self.foundation).build_Arg(\(expression.trimmed))" }
        if let chained = OptionalChain(expression) { return flatMap(chained) }
        if let reference = expression.as(DeclReferenceExprSyntax.self) {
            let name = reference.baseName.text
            return "\(Self.foundation).build_Arg(\(parameters[name] ?? name))"
        }
        if let tuple = expression.as(TupleExprSyntax.self), tuple.elements.count == 1, let only = tuple.elements.first {
            return write(only.expression)
        }
        if let infix = expression.as(InfixOperatorExprSyntax.self) { return write(infix) }
        if let prefix = expression.as(PrefixOperatorExprSyntax.self) { return write(prefix) }
        if let ternary = expression.as(TernaryExprSyntax.self) {
            return build(
                "Conditional", write(ternary.condition), write(ternary.thenExpression), write(ternary.elseExpression))
        }
        if let member = expression.as(MemberAccessExprSyntax.self), let base = member.base {
            return "\(Self.foundation).build_KeyPath(root: \(write(base)), keyPath: \\.\(member.declName.trimmed))"
        }
        if let unwrap = expression.as(ForceUnwrapExprSyntax.self) {
            return build("ForcedUnwrap", write(unwrap.expression))
        }
        if let check = expression.as(IsExprSyntax.self) {
            return "\(Self.foundation).TypeCheck<_, \(check.type.trimmed)>(\(write(check.expression)))"
        }
        if let cast = expression.as(AsExprSyntax.self), let mark = cast.questionOrExclamationMark {
            let kind = mark.tokenKind == .postfixQuestionMark ? "ConditionalCast" : "ForceCast"
            return "\(Self.foundation).\(kind)<_, \(cast.type.trimmed)>(\(write(cast.expression)))"
        }
        if let call = expression.as(FunctionCallExprSyntax.self) { return write(call) }
        if let condition = expression.as(IfExprSyntax.self) { return write(condition) }
        return unsupported(
            "This can't be part of a predicate. Compute it before, and use the result here.", expression)
    }

    func build(_ name: String, _ arguments: String...) -> String {
        "\(Self.foundation).build_\(name)(\(arguments.joined(separator: ", ")))"
    }

    private func flatMap(_ chain: OptionalChain) -> String {
        let name = freshName()
        let wrapped = write(chain.wrapped)
        parameters[name] = name
        defer { parameters[name] = nil }
        return "\(Self.foundation).build_flatMap(\(wrapped)) { \(name) in \(write(chain.continuation(on: name))) }"
    }

    private func write(_ prefix: PrefixOperatorExprSyntax) -> String {
        switch prefix.operator.text {
        case "!": build("Negation", write(prefix.expression))
        case "-": build("UnaryMinus", write(prefix.expression))
        default: unsupported("The operator \(prefix.operator.text) can't be part of a predicate.", prefix)
        }
    }

    private func write(_ infix: InfixOperatorExprSyntax) -> String {
        let name = infix.operator.trimmedDescription
        let (left, right) = (infix.leftOperand, infix.rightOperand)
        if name == "==" || name == "!=" {
            let kind = name == "==" ? "equal" : "notEqual"
            // `.family` has no type of its own: it gets the other side's.
            if Self.isImplicitMember(right) { return "\(Self.own).\(kind)(\(write(left)), \(right.trimmed))" }
            if Self.isImplicitMember(left) { return "\(Self.own).\(kind)(\(write(right)), \(left.trimmed))" }
        }
        func binary(_ name: String, _ more: String = "") -> String {
            "\(Self.foundation).build_\(name)(lhs: \(write(left)), rhs: \(write(right))\(more))"
        }
        switch name {
        case "&&": return binary("Conjunction")
        case "||": return binary("Disjunction")
        case "==": return binary("Equal")
        case "!=": return binary("NotEqual")
        case "<": return binary("Comparison", ", op: .lessThan")
        case "<=": return binary("Comparison", ", op: .lessThanOrEqual")
        case ">": return binary("Comparison", ", op: .greaterThan")
        case ">=": return binary("Comparison", ", op: .greaterThanOrEqual")
        case "+": return binary("Arithmetic", ", op: .add")
        case "-": return binary("Arithmetic", ", op: .subtract")
        case "*": return binary("Arithmetic", ", op: .multiply")
        case "/": return binary("Division")
        case "%": return binary("Remainder")
        case "??": return binary("NilCoalesce")
        case "...": return "\(Self.foundation).build_ClosedRange(lower: \(write(left)), upper: \(write(right)))"
        case "..<": return "\(Self.foundation).build_Range(lower: \(write(left)), upper: \(write(right)))"
        default: return unsupported("The operator \(name) can't be part of a predicate.", infix.operator)
        }
    }

    private static func isImplicitMember(_ expression: ExprSyntax) -> Bool {
        guard let member = expression.as(MemberAccessExprSyntax.self) else { return false }
        return member.base == nil
    }

    /// Writes `if a, b { c } else { d }` as `if a { if b { c } else { d } } else { d }`.
    private func write(_ condition: IfExprSyntax) -> String {
        guard let elseBody = condition.elseBody else {
            return unsupported("In a predicate, an if needs an else.", condition)
        }
        let otherwise: String
        switch elseBody {
        case .codeBlock(let body): otherwise = block(body.statements, at: body)
        case .ifExpr(let next): otherwise = write(next)
        }
        let outer = parameters
        defer { parameters = outer }
        return write(condition.conditions.map(\.condition)[...], condition.body, otherwise)
    }

    /// Writes `if let x = a { b } else { c }` as `a.flatMap { x in b } ?? c`.
    private func write(
        _ conditions: ArraySlice<ConditionElementSyntax.Condition>, _ body: CodeBlockSyntax, _ otherwise: String
    ) -> String {
        guard let first = conditions.first else { return block(body.statements, at: body) }
        let rest = conditions.dropFirst()
        switch first {
        case .expression(let test): return build("Conditional", write(test), write(rest, body, otherwise), otherwise)
        case .optionalBinding(let binding):
            let isUnnamed = binding.pattern.trimmedDescription == "_"
            guard
                let name = isUnnamed
                    ? freshName() : binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.text
            else { break }
            let value = binding.initializer?.value ?? ExprSyntax(DeclReferenceExprSyntax(baseName: .identifier(name)))
            let wrapped = write(value)
            parameters[name] = name
            let inner = write(rest, body, otherwise)
            return """
                \(Self.foundation).build_NilCoalesce(lhs: \(Self.foundation).build_flatMap(\(wrapped)) { \(name) in \
                \(inner) }, rhs: \(otherwise))
                """
        default: break
        }
        return unsupported("This condition can't be part of a predicate.", first)
    }

    // MARK: Calls

    private func write(_ call: FunctionCallExprSyntax) -> String {
        guard let member = call.calledExpression.as(MemberAccessExprSyntax.self), let base = member.base else {
            return unsupported("Call this before the predicate, and use the result here.", call)
        }
        let name = member.declName.baseName.text
        let label = call.arguments.first?.label?.text
        let argument = call.arguments.first?.expression
        let closure = call.trailingClosure ?? argument?.as(ClosureExprSyntax.self)
        if let closure, call.arguments.count <= 1 {
            let names = self.parameters(of: closure)
            let target = write(base)
            let body = "{ \(names.joined(separator: ", ")) in \(closureBody(closure, parameters: names)) }"
            switch name {
            case "contains": return "\(Self.foundation).build_contains(\(target), where: \(body))"
            case "allSatisfy": return "\(Self.foundation).build_allSatisfy(\(target), \(body))"
            case "filter": return "\(Self.foundation).build_filter(\(target), \(body))"
            case "flatMap": return "\(Self.foundation).build_flatMap(\(target)) \(body)"
            default: break
            }
        } else if let argument, call.arguments.count == 1 {
            switch (name, label) {
            case ("contains", nil): return build("contains", write(base), write(argument))
            case ("starts", "with"):
                return "\(Self.foundation).build_starts(\(write(base)), with: \(write(argument)))"
            case ("localizedStandardContains", nil), ("caseInsensitiveCompare", nil):
                return build(name, write(base), write(argument))
            case ("evaluate", nil): return "\(Self.own).evaluate(\(base.trimmed), \(write(argument)))"
            default: break
            }
        } else if call.arguments.isEmpty, ["min", "max"].contains(name) {
            return build(name, write(base))
        }
        return unsupported("\(name) can't be part of a predicate.", member.declName)
    }
}
