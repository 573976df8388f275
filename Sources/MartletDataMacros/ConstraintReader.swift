import SwiftSyntax
import SwiftSyntaxMacros

/// Reads `#Unique` and `#Index` in a model's class.
struct ConstraintReader {
    let model: ClassDeclSyntax

    init(_ model: ClassDeclSyntax) {
        self.model = model
    }

    /// Returns one `Schema.Constraint` for each list of key paths.
    func constraints(in context: some MacroExpansionContext) throws -> [String] {
        var found: [String] = []
        for item in model.memberBlock.members {
            guard let macro = item.decl.as(MacroExpansionDeclSyntax.self) else { continue }
            let kind: String
            switch macro.macroName.text {
            case "Unique": kind = "unique"
            case "Index": kind = "index"
            default: continue
            }
            for argument in macro.arguments {
                guard let list = Self.list(argument.expression, isIndex: kind == "index") else {
                    context.report("Write the key paths here, as a list: [\\.name].", at: argument)
                    continue
                }
                let names = list.elements.compactMap { name($0.expression, in: context) }
                guard names.count == list.elements.count, !names.isEmpty else { continue }
                found.append(".\(kind)([\(names.map { "\"\($0)\"" }.joined(separator: ", "))])")
            }
        }
        return found
    }

    /// The list itself, or the argument of `.binary(_:)` and `.rtree(_:)`.
    private static func list(_ expression: ExprSyntax, isIndex: Bool) -> ArrayExprSyntax? {
        guard isIndex, let call = expression.as(FunctionCallExprSyntax.self),
            let member = call.calledExpression.as(MemberAccessExprSyntax.self), call.arguments.count == 1,
            ["binary", "rtree"].contains(member.declName.baseName.text)
        else { return expression.as(ArrayExprSyntax.self) }
        return call.arguments.first?.expression.as(ArrayExprSyntax.self)
    }

    private func name(_ expression: ExprSyntax, in context: some MacroExpansionContext) -> String? {
        guard let path = expression.as(KeyPathExprSyntax.self), path.components.count == 1,
            let property = path.components.first?.component.as(KeyPathPropertyComponentSyntax.self)
        else {
            context.report("Name a property of the model itself: \\.name.", at: expression)
            return nil
        }
        return property.declName.baseName.text.trimmingBackticks
    }
}
