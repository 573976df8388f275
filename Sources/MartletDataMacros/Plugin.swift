import SwiftCompilerPlugin
package import SwiftSyntaxMacros

/// All macros of the module.
@main
package struct Plugin: CompilerPlugin {
    package let providingMacros: [any Macro.Type] = [
        ModelMacro.self, PersistedPropertyMacro.self, MarkerMacro.self, ConstraintMacro.self, PredicateMacro.self,
        ModelActorMacro.self,
    ]

    package init() {}
}
