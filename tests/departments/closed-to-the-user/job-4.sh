# jobgen slurm --site ./site.toml --queue test --walltime 5m -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=2
#SBATCH --mem=250G
#SBATCH --time=00:05:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=test
# jobgen: note: the launcher is srun, that of site site
