import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Model`: makes a class keep its values in a backing, makes it observable, and describes it to a schema.
struct ModelMacro {
    /// True if no superclass is a model: the compiler then requests the conformance that only this macro declares. A
    /// user's own protocol may inherit from `PersistentModel`, so that conformance alone proves nothing.
    static func isRoot(_ conformances: [TypeSyntax]) -> Bool {
        conformances.contains { $0.trimmedDescription.hasSuffix("_ModelRoot") }
    }

    static func persisted(_ members: MemberBlockItemListSyntax) -> [StoredProperty] {
        members.compactMap { StoredProperty($0.decl) }.filter { !$0.isTransient }
    }
}

extension ModelMacro: MemberAttributeMacro {
    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingAttributesFor member: some DeclSyntaxProtocol, in context: some MacroExpansionContext
    ) throws -> [AttributeSyntax] {
        guard let model = declaration.as(ClassDeclSyntax.self), let property = StoredProperty(member),
            !property.isTransient,
            let slot = persisted(model.memberBlock.members).firstIndex(where: { $0.name == property.name })
        else { return [] }
        return ["@MartletData._PersistedProperty(\(raw: slot))"]
    }
}

extension ModelMacro: ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(ClassDeclSyntax.self), isRoot(protocols) else { return [] }
        let availability = declaration.attributes.filter {
            $0.as(AttributeSyntax.self)?.attributeName.trimmedDescription == "available"
        }
        let known = ["PersistentModel": "MartletData", "_ModelRoot": "MartletData", "Observable": "Observation"]
        let missing = protocols.compactMap { type -> String? in
            let name = type.trimmedDescription.split(separator: ".").last.map(String.init) ?? ""
            return known[name].map { "\($0).\(name)" }
        }
        return [
            try ExtensionDeclSyntax(
                "\(availability)extension \(type.trimmed): \(raw: missing.joined(separator: ", ")) {}")
        ]
    }
}

extension ModelMacro: MemberMacro {
    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let model = declaration.as(ClassDeclSyntax.self) else {
            context.report("@Model belongs on a class.", at: node)
            return []
        }
        let writer = ModelDeclaration(model, isRoot: isRoot(protocols))
        guard writer.check(in: context) else { return [] }
        return try writer.members(in: context)
    }
}
