import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@ModelActor`: adds a container, an executor with a context, and an initializer to an actor.
struct ModelActorMacro: MemberMacro, ExtensionMacro {
    static func expansion(
        of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
        conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let actor = declaration.as(ActorDeclSyntax.self) else {
            context.report("@ModelActor belongs on an actor.", at: node)
            return []
        }
        let access = actor.modifiers.memberAccess
        var members: [DeclSyntax] = [
            "\(raw: access)nonisolated let modelExecutor: any MartletData.ModelExecutor",
            "\(raw: access)nonisolated let modelContainer: MartletData.ModelContainer",
        ]
        if !hasInitializer(actor), !needsInitializer(actor) {
            members.append(
                """
                \(raw: access)init(modelContainer: MartletData.ModelContainer) {
                    self.modelExecutor = MartletData.DefaultSerialModelExecutor(
                        modelContext: MartletData.ModelContext(modelContainer))
                    self.modelContainer = modelContainer
                }
                """)
        }
        return members
    }

    static func expansion(
        of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
        providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
        in context: some MacroExpansionContext
    ) throws -> [ExtensionDeclSyntax] {
        guard declaration.is(ActorDeclSyntax.self), !protocols.isEmpty else { return [] }
        return [try ExtensionDeclSyntax("extension \(type.trimmed): MartletData.ModelActor {}")]
    }

    /// An actor with a property without default value needs an initializer of its own, which also sets the macro's
    /// properties.
    private static func needsInitializer(_ actor: ActorDeclSyntax) -> Bool {
        actor.memberBlock.members.contains { member in
            guard let variable = member.decl.as(VariableDeclSyntax.self), variable.attributes.isEmpty,
                !variable.modifiers.contains(where: {
                    [.keyword(.static), .keyword(.lazy)].contains($0.name.tokenKind)
                })
            else { return false }
            let isConstant = variable.bindingSpecifier.tokenKind == .keyword(.let)
            return variable.bindings.contains { binding in
                let isOptional = binding.typeAnnotation?.type.is(OptionalTypeSyntax.self) ?? false
                return binding.initializer == nil && binding.accessorBlock == nil && (isConstant || !isOptional)
            }
        }
    }

    /// An actor that declares `init(modelContainer:)` itself keeps its own.
    private static func hasInitializer(_ actor: ActorDeclSyntax) -> Bool {
        actor.memberBlock.members.contains { member in
            guard let parameters = member.decl.as(InitializerDeclSyntax.self)?.signature.parameterClause.parameters
            else { return false }
            return parameters.map(\.firstName.text) == ["modelContainer"]
        }
    }
}
