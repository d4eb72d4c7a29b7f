// SPDX-License-Identifier: MIT
using System.Diagnostics;
using System.Net.Http.Headers;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;

namespace Mayfly.Testing;

/// <summary>A Mayfly server for a test: with its data in memory, and a clock that the test moves.</summary>
public sealed class MayflyServer : IAsyncDisposable
{
    private static readonly TimeSpan StartLimit = TimeSpan.FromSeconds(60);
    private readonly Process? _process;
    private readonly HttpClient _http;

    private MayflyServer(string endpoint, string key, Process? process)
    {
        Endpoint = endpoint.EndsWith('/') ? endpoint : endpoint + "/";
        Key = key;
        _process = process;
        _http = new HttpClient { BaseAddress = new Uri(Endpoint), Timeout = TimeSpan.FromSeconds(30) };
        _http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", key);
    }

    /// <summary>The endpoint, over HTTP.</summary>
    public string Endpoint { get; }

    /// <summary>The master key.</summary>
    public string Key { get; }

    /// <summary>The connection string, over HTTP.</summary>
    public string ConnectionString => $"AccountEndpoint={Endpoint};AccountKey={Key};";

    /// <summary>Starts the program in MAYFLY_BINARY, or mayfly, with more arguments for mayfly serve.</summary>
    public static async Task<MayflyServer> StartAsync(params string[] arguments)
    {
        var info = new ProcessStartInfo(Environment.GetEnvironmentVariable("MAYFLY_BINARY") ?? "mayfly")
        {
            RedirectStandardOutput = true, RedirectStandardError = true, UseShellExecute = false,
        };
        foreach (var argument in new[] { "serve", "--memory", "--test-clock" }.Concat(arguments).Append("--listen=127.0.0.1:0"))
        {
            info.ArgumentList.Add(argument);
        }
        var output = new StringBuilder();
        var greeted = new TaskCompletionSource<Match>(TaskCreationOptions.RunContinuationsAsynchronously);
        var process = new Process { StartInfo = info, EnableRaisingEvents = true };
        void Read(object _, DataReceivedEventArgs line)
        {
            if (line.Data is null) { return; }
            lock (output) { output.AppendLine(line.Data); }
            var found = Regex.Match(line.Data, "^Connection string: AccountEndpoint=([^;]*);AccountKey=([^;]*);");
            if (found.Success) { greeted.TrySetResult(found); }
        }
        process.OutputDataReceived += Read;
        process.ErrorDataReceived += Read;
        process.Exited += (_, _) => greeted.TrySetException(new InvalidOperationException("it has ended"));
        process.Start();
        process.BeginOutputReadLine();
        process.BeginErrorReadLine();
        try
        {
            var found = await greeted.Task.WaitAsync(StartLimit).ConfigureAwait(false);
            return new MayflyServer(found.Groups[1].Value, found.Groups[2].Value, process);
        }
        catch (Exception e)
        {
            if (!process.HasExited) { process.Kill(); }
            process.Dispose();
            lock (output) { throw new InvalidOperationException("mayfly has not started:\n" + output, e); }
        }
    }

    /// <summary>Returns a server that runs already.</summary>
    public static MayflyServer Connect(string connectionString)
    {
        var found = Regex.Match(connectionString, "AccountEndpoint=([^;]*);.*?AccountKey=([^;]*)");
        if (!found.Success) { throw new ArgumentException("It must have AccountEndpoint and AccountKey.", nameof(connectionString)); }
        return new MayflyServer(found.Groups[1].Value, found.Groups[2].Value, null);
    }

    /// <summary>Returns the certificate to trust for HTTPS, in PEM.</summary>
    public Task<string> CertificateAsync() => _http.GetStringAsync("_explorer/emulator.pem");

    /// <summary>Returns the server's time.</summary>
    public async Task<DateTimeOffset> NowAsync()
    {
        using var status = JsonDocument.Parse(await _http.GetStringAsync("_mayfly/clock").ConfigureAwait(false));
        return DateTimeOffset.FromUnixTimeMilliseconds(status.RootElement.GetProperty("nowMs").GetInt64());
    }

    /// <summary>Moves the server's time ahead.</summary>
    public Task AdvanceAsync(TimeSpan by) => ChangeAsync(new { advance = $"{(long)by.TotalMilliseconds}ms" });

    /// <summary>Moves the server's time ahead to a moment.</summary>
    public Task SetAsync(DateTimeOffset moment) => ChangeAsync(new { set = moment.UtcDateTime.ToString("yyyy-MM-dd'T'HH:mm:ss.fff'Z'") });

    /// <summary>Stops the server's time.</summary>
    public Task FreezeAsync() => ChangeAsync(new { freeze = true });

    /// <summary>Lets the server's time go on.</summary>
    public Task ReleaseAsync() => ChangeAsync(new { release = true });

    private async Task ChangeAsync(object change)
    {
        using var body = new StringContent(JsonSerializer.Serialize(change), Encoding.UTF8, "application/json");
        using var answer = await _http.PostAsync("_mayfly/clock", body).ConfigureAwait(false);
        if (!answer.IsSuccessStatusCode)
        {
            throw new InvalidOperationException($"The clock: status {(int)answer.StatusCode}: {await answer.Content.ReadAsStringAsync().ConfigureAwait(false)}");
        }
    }

    /// <summary>Stops the server.</summary>
    public async ValueTask DisposeAsync()
    {
        _http.Dispose();
        if (_process is null) { return; }
        if (!_process.HasExited) { _process.Kill(); } // its data is in memory
        await _process.WaitForExitAsync().ConfigureAwait(false);
        _process.Dispose();
    }
}
