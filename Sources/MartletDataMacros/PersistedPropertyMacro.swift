import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// Turns one stored property into accessors on the model's backing. Attached by `@Model`, never written by hand.
struct PersistedPropertyMacro: AccessorMacro, PeerMacro {
    static func expansion(
        of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [AccessorDeclSyntax] {
        guard let property = StoredProperty(declaration),
            case .argumentList(let arguments) = node.arguments,
            let slot = arguments.first?.expression.trimmedDescription
        else { return [] }
        let name = property.name
        // Only its transformer knows how to store the value.
        let kind = property.transformer == nil ? "" : "Transformed"
        let transformer = property.transformer.map { ", by: .init(\($0))" } ?? ""
        let storage = "_\(property.schemaName)"
        // The types of `_$backingData`, `_$adopt` and `_$firstSlot` depend on whether a superclass is a model, which
        // this role isn't told.
        var accessors: [AccessorDeclSyntax] = [
            """
            @storageRestrictions(accesses: _$backingData, initializes: \(raw: storage))
            init(initialValue) {
                _$backingData.initial.initialize\(raw: kind)(\(raw: slot), initialValue\(raw: transformer))
                \(raw: storage) = .init()
            }
            """,
            """
            get {
                _$adopt()
                _$observationRegistrar.access(self, keyPath: \\.\(raw: name))
                return _$backing.get\(raw: kind)(Self._$firstSlot + \(raw: slot)\(raw: transformer))
            }
            """,
        ]
        if !property.isConstant {
            let setter: AccessorDeclSyntax =
                """
                set {
                    _$adopt()
                    _$observationRegistrar.withMutation(of: self, keyPath: \\.\(raw: name)) {
                        _$backing.set\(raw: kind)(Self._$firstSlot + \(raw: slot), \
                newValue\(raw: transformer), of: self)
                    }
                }
                """
            accessors.append(setter)
        }
        return accessors
    }

    /// Generates storage that tracks whether the property has its first value, so that an initializer that forgets one
    /// doesn't compile.
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let property = StoredProperty(declaration) else { return [] }
        return ["private var _\(raw: property.schemaName): MartletData.PersistedProperty"]
    }
}
