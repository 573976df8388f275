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
            case .argumentList(let arguments) = node.arguments, arguments.count == 2,
            let slot = arguments.first?.expression.trimmedDescription,
            let isRoot = arguments.last?.expression.trimmedDescription
        else { return [] }
        let name = property.name
        // A value that only its transformer knows how to keep.
        let kind = property.transformer == nil ? "" : "Transformed"
        let transformer = property.transformer.map { ", by: .init(\($0))" } ?? ""
        let storage = "_\(property.schemaName)"
        let initial: AccessorDeclSyntax =
            isRoot == "true"
            ? """
            @storageRestrictions(accesses: _$backing, initializes: \(raw: storage))
            init(initialValue) {
                _$backing.initialize\(raw: kind)(\(raw: slot), initialValue\(raw: transformer))
                \(raw: storage) = .init()
            }
            """
            : """
            @storageRestrictions(accesses: _$initial, initializes: \(raw: storage))
            init(initialValue) {
                _$initial.initialize\(raw: kind)(\(raw: slot), initialValue\(raw: transformer))
                \(raw: storage) = .init()
            }
            """
        let adopt = isRoot == "true" ? "" : "_$adopt()\n"
        let base = isRoot == "true" ? "" : "Self._$firstSlot + "
        return [
            initial,
            """
            get {
                \(raw: adopt)_$observationRegistrar.access(self, keyPath: \\.\(raw: name))
                return _$backing.get\(raw: kind)(\(raw: base)\(raw: slot)\(raw: transformer))
            }
            """,
            """
            set {
                \(raw: adopt)_$observationRegistrar.withMutation(of: self, keyPath: \\.\(raw: name)) {
                    _$backing.set\(raw: kind)(\(raw: base)\(raw: slot), newValue\(raw: transformer), of: self)
                }
            }
            """,
        ]
    }

    /// The storage that says whether the property has been given its first value, so that an initializer which forgets one
    /// doesn't compile.
    static func expansion(
        of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
        in context: some MacroExpansionContext
    ) throws -> [DeclSyntax] {
        guard let property = StoredProperty(declaration) else { return [] }
        return ["private var _\(raw: property.schemaName): MartletData.PersistedProperty"]
    }
}
