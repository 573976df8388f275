import ArgumentParser
import SampleTripsApp

/// Separate from the app, so that tests can use its models: they can't import a program's module.
@main
struct Program {
    static func main() async { await SampleTripsCommand.main() }
}
