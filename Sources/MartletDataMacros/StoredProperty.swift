import SwiftSyntax
import SwiftSyntaxMacros

/// A stored property of a class, as `@Model` sees it.
struct StoredProperty {
    let declaration: VariableDeclSyntax
    let name: String
    /// Nil if the type is inferred.
    let type: TypeSyntax?
    let initializer: ExprSyntax?

    /// The arguments of `@Attribute`, as written.
    var attribute: LabeledExprListSyntax? { arguments(of: "Attribute") }
    var relationship: LabeledExprListSyntax? { arguments(of: "Relationship") }
    var isRelationship: Bool { has("Relationship") }
    var isTransient: Bool { has("Transient") }

    /// The property's name in the schema, without backticks.
    var schemaName: String { name.trimmingBackticks }

    /// True for a `let` that gets its value in an initializer.
    var isConstant: Bool { declaration.bindingSpecifier.tokenKind == .keyword(.let) }

    /// Nil for properties that `@Model` ignores: computed, static and lazy ones, constants with a value, and several in
    /// one declaration.
    init?(_ member: some DeclSyntaxProtocol) {
        guard let declaration = member.as(VariableDeclSyntax.self), declaration.bindings.count == 1,
            let binding = declaration.bindings.first,
            let pattern = binding.pattern.as(IdentifierPatternSyntax.self),
            declaration.bindingSpecifier.tokenKind == .keyword(.var) || binding.initializer == nil,
            !declaration.modifiers.contains(where: {
                [.keyword(.static), .keyword(.class), .keyword(.lazy)].contains($0.name.tokenKind)
            }), Self.isStored(binding)
        else { return nil }
        self.declaration = declaration
        name = pattern.identifier.text
        type = binding.typeAnnotation?.type.trimmed
        initializer = binding.initializer?.value.trimmed
    }

    private static func isStored(_ binding: PatternBindingSyntax) -> Bool {
        switch binding.accessorBlock?.accessors {
        case nil: true
        case .getter: false
        case .accessors(let accessors):
            accessors.allSatisfy {
                [.keyword(.willSet), .keyword(.didSet)].contains($0.accessorSpecifier.tokenKind)
            }
        }
    }

    /// True if `willSet` or `didSet` is declared.
    var hasObservers: Bool { declaration.bindings.first?.accessorBlock != nil }

    func has(_ name: String) -> Bool { marker(name) != nil }

    private func marker(_ name: String) -> AttributeSyntax? {
        declaration.attributes.lazy.compactMap { $0.as(AttributeSyntax.self) }.first {
            $0.attributeName.trimmedDescription.split(separator: ".").last.map(String.init) == name
        }
    }

    /// The argument of `@Attribute(.transformable(by:))`: a type, or the name of a registered transformer.
    var transformer: ExprSyntax? {
        attribute?.lazy.compactMap { argument -> ExprSyntax? in
            guard let call = argument.expression.as(FunctionCallExprSyntax.self),
                call.calledExpression.as(MemberAccessExprSyntax.self)?.declName.baseName.text == "transformable"
            else { return nil }
            return call.arguments.first?.expression.trimmed
        }.first
    }

    private func arguments(of name: String) -> LabeledExprListSyntax? {
        guard case .argumentList(let list) = marker(name)?.arguments else { return nil }
        return list
    }
}

extension String {
    var trimmingBackticks: String { filter { $0 != "`" } }
}
