import SwiftSyntax
import SwiftSyntaxMacros

/// `@Attribute`, `@Relationship` and `@Transient`: `@Model` reads them, and they expand to nothing.
struct MarkerMacro: PeerMacro {
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        if declaration.as(VariableDeclSyntax.self) == nil {
            context.warn(
                """
                @\(node.attributeName.trimmedDescription) has no effect here: it belongs on a stored property of a \
                model.
                """,
                at: node)
        }
        return []
    }
}

/// `#Unique` and `#Index`: `@Model` reads them, and they expand to nothing.
struct ConstraintMacro: DeclarationMacro {
    static func expansion(
        of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        []
    }
}
