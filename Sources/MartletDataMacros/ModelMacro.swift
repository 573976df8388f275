import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Model`: the class keeps its values in a backing, is observable, and describes itself to a schema.
struct ModelMacro {
    /// True where no superclass is a model: the compiler then asks for the conformances.
    static func isRoot(_ conformances: [TypeSyntax]) -> Bool {
        conformances.contains { $0.trimmedDescription.hasSuffix("PersistentModel") }
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
            !property.isTransient, !property.hasObservers,
            let slot = persisted(model.memberBlock.members).firstIndex(where: { $0.name == property.name })
        else { return [] }
        return ["@MartletData._PersistedProperty(\(raw: slot), isRoot: \(raw: !hasModelSuperclass(model)))"]
    }

    /// This role isn't told of conformances. A class has a superclass where its first inherited type is no protocol that
    /// models use, and a superclass of a model is a model.
    private static func hasModelSuperclass(_ model: ClassDeclSyntax) -> Bool {
        guard let first = ModelDeclaration.superclassCandidate(model) else { return false }
        return !ModelDeclaration.knownProtocols.contains(first)
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
        return [
            try ExtensionDeclSyntax(
                "\(availability)extension \(type.trimmed): MartletData.PersistentModel, Observation.Observable {}")
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
